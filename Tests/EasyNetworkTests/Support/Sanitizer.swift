#if os(Linux)
import Foundation

/// Whether the tests run under one that keeps what is freed, or shadows all memory: then sizes mean nothing.
enum Sanitizer {
    static var isThere: Bool {
        ["__tsan_init", "__asan_init"].contains { (name: String) in dlsym(nil, name) != nil }
    }
}
#endif
