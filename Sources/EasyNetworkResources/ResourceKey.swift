/// The names of a resource, or of a variant of it.
struct ResourceKey: Sendable {
    /// The name of the whole resource.
    let resource: String
    /// The name in memory and among the failures. Whatever keys the user chooses, a variant never has the name of
    /// another resource.
    let memory: String

    /// - Parameter version: a number that changes with the user, so that the next user who signs in doesn't get the
    ///   resources of another.
    init(_ key: String, version: Int) {
        resource = version > 0 ? "\(version)=" + key : "=" + key
        memory = resource
    }

    private init(resource: String, memory: String) {
        (self.resource, self.memory) = (resource, memory)
    }

    /// Creates the key of the whole resource from a variant's key.
    init(whole key: ResourceKey) {
        self.init(resource: key.resource, memory: key.resource)
    }

    func variant(_ name: String) -> ResourceKey {
        ResourceKey(resource: resource, memory: "v\(name.utf8.count):" + name + resource)
    }

    /// Returns the name of the load, which depends on whether the load can use the cache.
    func load(ignoresCache: Bool) -> String {
        ignoresCache ? "!" + memory : memory
    }
}
