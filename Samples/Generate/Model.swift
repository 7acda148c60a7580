/// A struct for a JSON object, with the names of its properties and nested structs.
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

    /// Whether any key, including those of nested structs, has an underscore.
    var hasSnakeCase: Bool { properties.contains { $0.key.contains("_") || $0.nested?.hasSnakeCase == true } }

    /// - Parameter outer: The names of the enclosing structs, which no nested struct may hide.
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
