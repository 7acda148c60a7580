import Foundation

/// The outcome of a dependency that an operation requires.
///
/// ```swift
/// report.addDependency(upload, policy: .allowFailure)
/// ```
public enum DependencyPolicy: Sendable {
    /// The dependency must end without an error. Otherwise the dependent ends with `NetworkError.Code.dependencyFailed`
    /// and does not execute. A plain `Operation` counts as successful unless it was cancelled. `addDependency(_:)` uses
    /// this policy.
    case requireSuccess
    /// The dependency must have ended, with success or failure.
    case allowFailure
}

/// An operation that another one waits for.
struct OperationDependency {
    let operation: NetworkOperation
    let policy: DependencyPolicy

    init(_ operation: Operation, _ policy: DependencyPolicy) {
        self.operation = operation.asNetworkOperation
        self.policy = policy
    }

    /// The dependent's error if this dependency ended in a way that the policy does not allow.
    var failure: NetworkError? {
        guard policy == .requireSuccess, let cause = operation.error ?? operation.errorOfOriginal else { return nil }
        // Use the root cause: in a chain of 100,000, the dependencies' own errors would nest as deep. The message
        // contains no type names, because apps show it to users. If the dependency's own dependency failed, its error
        // already has this message.
        let message = [operation.original.quotedName, cause.rootCause.wording].compactMap { $0 }.joined(separator: ": ")
        return NetworkError(
            code: .dependencyFailed,
            message: cause.code == .dependencyFailed ? cause.message : message,
            underlying: cause.rootCause,
            dependencyPath: NetworkError.path(cause.dependencyPath, continuedBy: operation.original.nameOrType)
        )
    }
}

/// The operations that another one waits for.
///
/// They are released one after the other. Otherwise, the members of a long chain would release each other recursively,
/// and 100,000 of them would overflow the stack. Here, each member hands its own dependencies to the loop that is
/// releasing it, on the same thread.
final class OperationDependencies: @unchecked Sendable {
    // Sendable because it is used under the lock of the operation that owns it.
    var list: [OperationDependency] = []

    deinit {
        // A finished operation has no dependencies to release.
        guard list.contains(where: { !$0.operation.isFinished }) else { return }
        let thread = Thread.current.threadDictionary
        if let releasing = thread[Releasing.key] as? Releasing {
            releasing.dependencies.append(contentsOf: list.take())
            return
        }
        let releasing = Releasing(list.take())
        thread[Releasing.key] = releasing
        while releasing.dependencies.popLast() != nil {}
        thread.removeObject(forKey: Releasing.key)
    }

    func lastIndex(of operation: NetworkOperation) -> Int? {
        list.lastIndex { $0.operation === operation }
    }

    private final class Releasing {
        static let key = "EasyNetwork.OperationDependencies.Releasing"
        var dependencies: [OperationDependency]

        init(_ dependencies: consuming [OperationDependency]) {
            self.dependencies = dependencies
        }
    }
}

extension Operation {
    /// The name that the user gave, unless it is invisible, for example because it has only blanks and line separators.
    package var givenName: String? {
        guard let name, name.unicodeScalars.contains(where: \.isVisible) else { return nil }
        return name
    }

    /// The name that the user gave; otherwise the name of the request's type, or of the operation's type.
    package var nameOrType: String {
        if let givenName { return givenName }
        let type = typeName
        let prefix = ["RequestOperation<", "UploadOperation<"].first(where: type.hasPrefix)
        guard let prefix, type.hasSuffix(">") else { return type }
        return String(type.dropFirst(prefix.count).dropLast())
    }

    /// The name of the type. Swift creates it at great cost, so it is kept for each type.
    var typeName: String {
        let type = ObjectIdentifier(Swift.type(of: self))
        return Self.typeNames.withLock { names in
            if let name = names[type] { return name }
            let name = String(describing: Swift.type(of: self))
            names[type] = name
            return name
        }
    }

    private static let typeNames = Locked<[ObjectIdentifier: String]>([:])

    /// The name that the user gave, in quotes and without its secrets; `nil` if there is none. Only the quotes show
    /// where it ends.
    var quotedName: String? {
        givenName.map { "'\(Redaction.standard.redacted($0))'" }
    }

    /// The ``nameOrType``, with a given name in quotes and without its secrets.
    package var nameForMessages: String { quotedName ?? nameOrType }
}

extension NetworkError {
    /// Returns the error for a cycle of operations, which begins and ends with the same operation.
    static func cycle(_ operations: [Operation]) -> NetworkError {
        let names = operations.reduce([]) { Self.path($0, continuedBy: $1.nameForMessages) }
        return NetworkError(
            code: .cycle,
            message: names.joined(separator: " waits for "),
            dependencyPath: operations.reduce([]) { Self.path($0, continuedBy: $1.nameOrType) }
        )
    }

    /// The length of the longest path. Its first and last names are sufficient.
    private static let pathLimit = 16

    fileprivate static func path(_ path: [String], continuedBy name: String) -> [String] {
        guard path.count >= pathLimit else { return path + [name] }
        return [path[0], "…"] + path.dropFirst(3) + [name]
    }
}
