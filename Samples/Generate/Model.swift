/// A struct for a JSON object, with the names of its properties and of the structs in it.
struct Model {
    struct Property {
        let key: String
        let name: String
        let shape: Shape
        /// The struct of the object in the shape.
        let nested: Model?
    }

    let name: String
    let properties: [Property]

    /// Whether a key, also of a struct in it, has an underscore.
    var hasSnakeCase: Bool { properties.contains { $0.key.contains("_") || $0.nested?.hasSnakeCase == true } }

    /// - Parameter outer: the names of the structs around it, which no struct in it may hide.
    init(name: String, members: [Shape.Member], outer: Set<String> = []) {
        self.name = name
        let outer = outer.union([name])
        var types = outer
        var names: Set<String> = []
        properties = members.map { member in
            let noun = member.shape.keys == nil ? Name.singular(member.key) : member.key
            let nested = member.shape.members.map { members in
                Model(name: Name.unique(Name.type(noun, isNested: true), &types), members: members, outer: outer)
            }
            let name = Name.unique(Name.property(member.key), &names)
            return Property(key: member.key, name: name, shape: member.shape, nested: nested)
        }
    }
}
