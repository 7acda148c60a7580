import Foundation

/// What an operation needs of one that it depends on.
public enum DependencyPolicy: Sendable {
    /// It must end without an error; else the dependent ends with `NetworkError.Code.dependencyFailed` and does not
    /// execute. A plain `Operation` counts as successful unless it was cancelled. This is what
    /// `addDependency(_:)` means.
    case requireSuccess
    /// It must have ended, well or not.
    case allowFailure
}

/// An operation that another one waits for.
struct OperationDependency {
    let operation: Operation
    let policy: DependencyPolicy

    /// The error of the dependent if this dependency has ended in a way that it cannot go on from.
    var failure: NetworkError? {
        guard policy == .requireSuccess, let cause else { return nil }
        // The root cause and not the dependency's own error: a chain of a hundred thousand would else nest as deep.
        return NetworkError(
            code: .dependencyFailed,
            message: "\(operation.nameForMessages) did not succeed: \(cause.rootCause.wording)",
            underlying: cause.rootCause,
            dependencyPath: NetworkError.path(cause.dependencyPath, continuedBy: operation.nameOrType)
        )
    }

    private var cause: NetworkError? {
        guard let operation = operation as? NetworkOperation else {
            return operation.isCancelled ? NetworkError(code: .cancelled) : nil
        }
        return operation.error
    }

    /// Lets go of dependencies, one after the other.
    ///
    /// Left to themselves, the members of a long chain release each other from the inside, and a hundred thousand
    /// overflow the stack. Here each hands its own on to the loop that is releasing it, on the same thread.
    static func releaseInTurn(_ dependencies: consuming [OperationDependency]) {
        // One that has finished holds no others any more.
        guard dependencies.contains(where: { !$0.operation.isFinished }) else { return }
        let thread = Thread.current.threadDictionary
        if let releasing = thread[Releasing.key] as? Releasing {
            releasing.dependencies.append(contentsOf: dependencies)
            return
        }
        let releasing = Releasing(dependencies)
        thread[Releasing.key] = releasing
        while releasing.dependencies.popLast() != nil {}
        thread.removeObject(forKey: Releasing.key)
    }

    private final class Releasing {
        static let key = "EasyNetwork.OperationDependency.Releasing"
        var dependencies: [OperationDependency]

        init(_ dependencies: consuming [OperationDependency]) {
            self.dependencies = dependencies
        }
    }
}

extension NetworkError {
    /// A circle among operations, which begins and ends with the same one.
    static func cycle(_ operations: [Operation]) -> NetworkError {
        let names = operations.reduce([]) { Self.path($0, continuedBy: $1.nameForMessages) }
        return NetworkError(
            code: .cycle,
            message: names.joined(separator: " waits for "),
            dependencyPath: operations.reduce([]) { Self.path($0, continuedBy: $1.nameOrType) }
        )
    }

    /// A path grows no longer than this: the first names and the last ones say enough.
    private static let pathLimit = 16

    fileprivate static func path(_ path: [String], continuedBy name: String) -> [String] {
        guard path.count >= pathLimit else { return path + [name] }
        return [path[0], "…"] + path.dropFirst(3) + [name]
    }
}
