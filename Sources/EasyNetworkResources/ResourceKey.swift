/// The names of a resource, or of a variant of it.
struct ResourceKey: Sendable {
    /// That of the whole resource.
    let resource: String
    /// In memory, and among the failures. No variant of one resource has the name of another resource, whatever text
    /// the user's keys are.
    let memory: String

    /// - Parameter version: the user's, so that what is loaded for one is not for the next one who signs in.
    init(_ key: String, version: Int) {
        resource = version > 0 ? "\(version)=" + key : "=" + key
        memory = resource
    }

    private init(resource: String, memory: String) {
        (self.resource, self.memory) = (resource, memory)
    }

    /// The key of the whole resource, for that of a variant.
    init(whole key: ResourceKey) {
        self.init(resource: key.resource, memory: key.resource)
    }

    func variant(_ name: String) -> ResourceKey {
        ResourceKey(resource: resource, memory: "v\(name.utf8.count):" + name + resource)
    }

    /// The name of the load: one that may be answered by a cache, or one that goes past it.
    func load(ignoresCache: Bool) -> String {
        ignoresCache ? "!" + memory : memory
    }
}
