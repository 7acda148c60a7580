import EasyNetwork
import Foundation

/// Sends requests to a server that counts them; see `.ci/servers`.
///
///     Load URL COUNT AT-ONCE [AUTHORITY [USER PASSWORD [once]]]
///
/// Every second request is a POST with a body, with `once` of one that can be read once. Request 7 of 100 goes to the path
/// `7`. Prints a line for each request: method, path, status code or error code, whether the server may have seen it, how
/// many attempts it took, and the size of the body or the message of an error.
@main
struct Load {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4, let url = URL(string: arguments[1]), let count = Int(arguments[2]),
            let limit = Int(arguments[3])
        else {
            print("usage: Load URL COUNT AT-ONCE [AUTHORITY]")
            exit(EXIT_FAILURE)
        }
        var configuration = TransportConfiguration()
        if arguments.count > 4 { configuration.tls.trust = .certificateFile(URL(fileURLWithPath: arguments[4])) }
        let password = arguments.count > 6 ? passwordAuthentication(arguments[5], arguments[6]) : nil
        let host = HostConfiguration(
            baseURL: url,
            deadlines: TransportDeadlines(total: 60),
            transport: configuration.makeTransport()
        ) {
            $0.authentication = password
        }
        let isOnce = arguments.count > 7
        let service = EasyNetworkService(host)
        let queue = NetworkQueue(name: "load", maxConcurrentOperationCount: limit)
        let operations = (0..<count).map { RequestOperation(Numbered(number: $0, isOnce: isOnce), service: service) }
        queue.addOperations(operations)
        var lines = ""
        for (number, operation) in operations.enumerated() {
            let head = "\(number.isMultiple(of: 2) ? "GET" : "POST") \(number)"
            do {
                let response = try await operation.value
                lines += "\(head) \(response.statusCode) seen \(response.history.count) \(response.body.count) bytes\n"
            } catch {
                let fate = error.mayHaveReachedServer ? "perhaps" : "unseen"
                lines += "\(head) \(error.code) \(fate) \(error.history.count) \(error.message ?? "")\n"
            }
        }
        FileHandle.standardOutput.write(Data(lines.utf8))
    }
}

/// The authentication; ends the program if the user's name is invalid.
private func passwordAuthentication(_ user: String, _ password: String) -> RequestAuthentication {
    do {
        return try .password(user: user, password: password)
    } catch {
        print(error)
        exit(EXIT_FAILURE)
    }
}

private struct Numbered: APIRequest {
    typealias Item = NetworkResponse
    let number: Int
    let isOnce: Bool
    var api: String { "\(number)" }
    var method: NetworkService.Method { number.isMultiple(of: 2) ? .get : .post }
    // Attempts of the policy would hide what the transport loses.
    var options: RequestOptions { RequestOptions(retry: .never) }
    var body: RequestBody? {
        let data = Data("request \(number)".utf8)
        if number.isMultiple(of: 2) { return nil }
        return isOnce ? .stream(TransportBodyStream(isReplayable: false) { InputStream(data: data) }) : .data(data)
    }
}
