/// What an operation may be given before it is added.
extension NetworkOperation {
    /// Reads an option without making a box for it.
    final func option<Value>(_ read: (OperationOptions) -> Value) -> Value {
        core.withLock { read($0.options?.options ?? OperationOptions()) }
    }

    final func setOption<Value>(_ path: WritableKeyPath<OperationOptions, Value>, _ value: Value) {
        let old = changeOptions { options, _ in
            let old = options[keyPath: path]
            options[keyPath: path] = value
            return old
        }
        // What the old value holds is let go of outside the lock.
        withExtendedLifetime(old) {}
    }

    /// Changes options under the lock, in view of how far the operation is.
    final func changeOptions<Value>(_ change: (inout OperationOptions, OperationLifecycle.Phase) -> Value) -> Value {
        core.withLock { state in
            let box = state.options ?? OperationOptionsBox()
            state.options = box
            return change(&box.options, state.lifecycle.phase)
        }
    }

    /// What the operation belongs to, for limits and for cancelling several at once:
    /// `cancelOperations(tag:)`. Read when it is added to a queue. Default none.
    public final var tags: Set<String> {
        get { option(\.tags) }
        set { setOption(\.tags, newValue) }
    }

    /// Of the operations of a queue that share a category, one runs at a time. Read when it is added to a queue. Default
    /// none.
    ///
    /// All categories are taken together when the operation starts, so that no two wait for each other; they are given
    /// back with its slot, also by ``releaseSlot()``. A batch or chain keeps them until it ends, and its children need not
    /// wait for those; they must not wait for another operation of the category, which waits for the batch. No circle is
    /// seen there.
    public final var mutualExclusionCategories: Set<String> {
        get { option(\.mutualExclusionCategories) }
        set { setOption(\.mutualExclusionCategories, newValue) }
    }

    private static let lastID = Locked<UInt64>(0)

    /// A number that no other operation of the process has, ever: for ``NetworkQueue/cancelOperation(id:)``, where the
    /// operation itself is not at hand.
    public final var operationID: UInt64 {
        changeOptions { options, _ in
            if let id = options.operationID { return id }
            let id = Self.lastID.withLock { last in
                last += 1
                return last
            }
            options.operationID = id
            return id
        }
    }

    /// What the operation counts in the ``GroupOperation/progress`` of a batch or a chain, against the other children's:
    /// the expected size of a download in kilobytes, for instance. Read when it is added to the group. Default 1; at
    /// least 1 and at most 2^40, other values become these.
    public final var progressWeight: Int64 {
        get { option(\.progressWeight) }
        set { setOption(\.progressWeight, min(max(1, newValue), 1 << 40)) }
    }
}
