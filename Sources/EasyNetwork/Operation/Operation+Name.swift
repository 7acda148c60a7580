import Foundation

extension Operation {
    /// The name the user gave, else the type's.
    var nameOrType: String {
        if let name, !name.isEmpty { return name }
        return String(describing: type(of: self))
    }

    /// The same, a name in quotes.
    var nameForMessages: String {
        if let name, !name.isEmpty { return "'\(name)'" }
        return nameOrType
    }
}
