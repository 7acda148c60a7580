extension Array {
    /// Empties the array and returns what was in it.
    mutating func take() -> [Element] {
        let elements = self
        self = []
        return elements
    }
}
