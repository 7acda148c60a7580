import Foundation

/// The place of the large files: in memory if there is room, because otherwise the disk is measured.
struct ScratchFolder {
    let parent: URL
    let remark: String

    /// The size of the download and of the server's file for an upload, 1 GiB each, and the same again as a reserve.
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
