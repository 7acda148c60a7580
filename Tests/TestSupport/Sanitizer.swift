#if os(Linux)
import Foundation

/// Whether a sanitizer retains freed memory or shadows all of it, so that memory sizes are meaningless.
enum Sanitizer {
    static var isThere: Bool {
        ["__tsan_init", "__asan_init"].contains { (name: String) in dlsym(nil, name) != nil }
    }
}
#endif
