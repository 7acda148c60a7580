import Foundation

extension Redaction {
    /// The ``HostSettings/secretNames`` of all hosts. A name that is secret for one host is hidden wherever it is
    /// printed, even where the host is unknown, as in the name of a job or in ``HTTPHeaders/description``.
    private static let hostNames = Locked<Set<String>>([])
    private static let hasHostNames = Flag()

    /// Adds the names of a host. Hosts with the same names add nothing.
    static func addHostNames(_ names: Set<String>) {
        guard !names.isEmpty else { return }
        hostNames.withLock { $0.formUnion(normalized(names)) }
        hasHostNames.isSet = true
    }

    static func normalized(_ names: Set<String>) -> Set<String> {
        Set(names.map { $0.utf8Bytes { SecretName.words(of: $0, \.text) } })
    }

    func isSecret(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        SecretName.words(of: name) { name in
            guard !name.letters.isEmpty else { return false }
            if SecretName.isKnown(name) { return true }
            let hasHostNames = Self.hasHostNames.isSet
            guard hasHostNames || !names.isEmpty else { return false }
            let text = name.text
            return names.contains(text) || hasHostNames && Self.hostNames.withLock { $0.contains(text) }
        }
    }
}
