/// Makes one view of a result: what a list shows of a user, what a form does, what is kept on disk.
///
/// The request knows how to read the answer; each place that shows it has a reformer of its own:
///
/// ```swift
/// struct UserRow: Reformer {
///     func reform(_ user: User) throws -> String { "\(user.name), \(user.city)" }
/// }
///
/// let row = operation.result?.reformed(by: UserRow())
/// ```
///
/// Called on the thread that asks.
public protocol Reformer<Input, Output>: Sendable {
    associatedtype Input
    associatedtype Output

    /// What errors call the view. Default the name of the type.
    var name: String { get }

    /// - Throws: anything; what is no ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    func reform(_ input: Input) throws -> Output
}

extension Reformer {
    public var name: String { String(describing: Self.self) }

    /// This view, and of it another one: `UserRow().then(Uppercased())`.
    public func then<Next: Reformer>(_ next: Next) -> ClosureReformer<Input, Next.Output> where Next.Input == Output {
        ClosureReformer(name) { input in try next.reform(reform(input)) }
    }
}

/// A reformer from a closure.
public struct ClosureReformer<Input, Output>: Reformer {
    public let name: String
    private let body: @Sendable (Input) throws -> Output

    public init(_ name: String, _ body: @escaping @Sendable (Input) throws -> Output) {
        self.name = name
        self.body = body
    }

    public func reform(_ input: Input) throws -> Output {
        try body(input)
    }
}

extension Result where Failure == NetworkError {
    /// The view of a success; a failure stays as it is.
    ///
    /// What the reformer throws becomes a failure whose message begins with its name.
    public func reformed<View>(by reformer: some Reformer<Success, View>) -> Result<View, NetworkError> {
        flatMap { success in
            do {
                return .success(try reformer.reform(success))
            } catch {
                return .failure(.reforming(error, reformer.name))
            }
        }
    }

    /// Several views of one result under keys of one's own. One that fails leaves the others alone.
    ///
    /// ```swift
    /// enum Part { case list, detail }
    /// let views = result.reformed(by: [Part.list: UserRow(), .detail: UserCard()])
    /// ```
    public func reformed<Key: Hashable, View>(
        by reformers: [Key: any Reformer<Success, View>]
    ) -> [Key: Result<View, NetworkError>] {
        reformers.mapValues { reformed(by: $0) }
    }
}

extension NetworkResponse {
    /// The view of this answer.
    ///
    /// - Throws: what the reformer throws as a ``NetworkError`` with what this answer says; its message begins with the
    ///   reformer's name.
    public func reformed<View>(by reformer: some Reformer<NetworkResponse, View>) throws(NetworkError) -> View {
        do {
            return try reformer.reform(self)
        } catch {
            throw .reforming(mappingError(error), reformer.name)
        }
    }

    /// Several views of this answer under keys of one's own. One that fails leaves the others alone.
    public func reformed<Key: Hashable, View>(
        by reformers: [Key: any Reformer<NetworkResponse, View>]
    ) -> [Key: Result<View, NetworkError>] {
        reformers.mapValues { reformer in
            do throws(NetworkError) {
                return .success(try reformed(by: reformer))
            } catch {
                return .failure(error)
            }
        }
    }
}

extension NetworkError {
    fileprivate static func reforming(_ error: any Error, _ name: String) -> NetworkError {
        var result: NetworkError
        switch error {
        case let error as ResponseMapperError:
            result = NetworkError(code: .cannotParseResponse, message: error.phrase, underlying: error)
        case let error as DecodingError:
            let message = DecodingFailure.message(for: error, in: nil)
            result = NetworkError(code: .cannotParseResponse, message: message, underlying: error)
        default:
            result = thrown(error, otherwise: .cannotParseResponse)
        }
        result.message = result.message.map { "\(name): \($0)" } ?? name
        return result
    }
}
