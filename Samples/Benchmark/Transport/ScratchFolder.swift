import Foundation

/// Where the large files are: in memory if there is a place for that, as otherwise the disk is measured.
struct ScratchFolder {
    let parent: URL
    let remark: String

    /// Files of 1 GiB: what is downloaded, and what the server makes of an upload; twice that, to be on the safe side.
    private static let neededBytes: UInt64 = 4 << 30

    static func choose() -> ScratchFolder {
        let memory = "/dev/shm"
        let free = (try? FileManager.default.attributesOfFileSystem(forPath: memory))?[.systemFreeSize] as? NSNumber
        if FileManager.default.isWritableFile(atPath: memory), let free, free.uint64Value >= neededBytes {
            return ScratchFolder(
                parent: URL(fileURLWithPath: memory),
                remark: "Files are in \(memory), which is memory: no disk slows the large bodies down."
            )
        }
        let folder = FileManager.default.temporaryDirectory
        return ScratchFolder(
            parent: folder,
            remark: "Files are in \(folder.path): if that is a slow disk, the large bodies measure the disk."
        )
    }
}
