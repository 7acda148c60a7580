/// A request that is generated.
struct RequestDeclaration {
    struct Property {
        let name: String
        let type: SwiftType
        var comment = Comment()
        /// As it is written in Swift.
        var initial: String?
    }

    /// An answer or an error by its status.
    struct Answer {
        enum Content: Equatable {
            case none, text, data
            case json(SwiftType)
        }

        /// `200`, `2XX` or `default`.
        let status: String
        let content: Content

        var type: SwiftType? {
            switch content {
            case .none: nil
            case .text: .named("String")
            case .data: .named("Data")
            case .json(let type): type
            }
        }
    }

    let name: String
    let tag: String?
    let comment: Comment
    let isDeprecated: Bool
    var properties: [Property] = []
    /// The members of the protocol, each on a line or more.
    var members: [[String]] = []
    /// Keys of the parameters, when they are written by an encoder.
    var codingKeys: [(name: String, key: String)]?
    /// Answers that are a success, and others.
    var answers: [Answer] = []
    var failures: [Answer] = []
    var nested: [Declaration] = []
}
