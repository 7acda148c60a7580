import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("ContentDisposition")
struct ContentDispositionTests {
    @Test(
        "TRF-2: RFC 6266, section 4: the name is a token or a quoted string, in any case and with blanks anywhere",
        arguments: [
            ("attachment; filename=a.txt", "a.txt"),
            ("attachment;filename=\"a b.txt\"", "a b.txt"),
            ("INLINE ; FileName \t=\t\"a;b,c=d.txt\" ; size=3", "a;b,c=d.txt"),
            (#"attachment; filename="a\"b\\c""#, #"a"b\c"#),
            ("  form-data; name=\"x; filename=no\"; filename=yes  ", "yes"),
            ("attachment; filename=\"a%20b.txt\"", "a%20b.txt"),
            ("attachment; filename=\"../../etc/passwd\"", "../../etc/passwd"),
        ]
    )
    func plain(field: String, name: String) {
        expect(ContentDisposition(field)?.fileName, equals: name)
    }

    @Test(
        "TRF-2: RFC 8187: the extended name is decoded, and precedes the plain one in any order",
        arguments: [
            ("attachment; filename*=UTF-8''%E2%82%AC%20rates.txt", "€ rates.txt"),
            ("attachment; filename=\"EURO.txt\"; filename*=utf-8'en'%e2%82%ac.txt", "€.txt"),
            ("attachment; FILENAME*=UTF-8''%E2%82%AC.txt; filename=EURO.txt", "€.txt"),
            ("attachment; filename*=UTF-8''it's(1)*.txt", "it's(1)*.txt"),
            ("attachment; filename* = UTF-8''a.txt", "a.txt"),
            ("attachment; filename*=ISO-8859-1''na%EFve%20%25.txt; filename=naive.txt", "naïve %.txt"),
            ("attachment; filename*=iso-8859-1'de'%FCb.txt", "üb.txt"),
        ]
    )
    func extended(field: String, name: String) {
        expect(ContentDisposition(field)?.fileName, equals: name)
    }

    @Test(
        "TRF-2: RFC 8187, section 3.2: the plain name replaces an invalid extended one",
        arguments: [
            "UTF-8''%E2%82.txt", "UTF-8''%", "UTF-8''%4", "UTF-8''%zz", "UTF-8''%+1", "UTF-8'a.txt", "a.txt", "''a.txt",
            "windows-1252''a.txt", "iso-8859-1''%E", "iso-8859-15''a.txt", "\"UTF-8''a.txt\"", "UTF-8''a b.txt",
            "UTF-8''é.txt", "UTF-8''",
            "",
        ]
    )
    func unsound(value: String) {
        expect(ContentDisposition("attachment; filename*=\(value); filename=plain.txt")?.fileName, equals: "plain.txt")
        expect(ContentDisposition("attachment; filename=plain.txt; filename*=\(value)")?.fileName, equals: "plain.txt")
        expect(ContentDisposition("attachment; filename*=\(value)")?.fileName == nil)
    }

    @Test(
        "TRF-2: the first valid one of repeated parameters counts",
        arguments: [
            ("attachment; filename=a; filename=b", "a"),
            ("attachment; filename=\"\"; filename=b", "b"),
            ("attachment; filename*=UTF-8''a; filename*=UTF-8''b", "a"),
            ("attachment; filename*=UTF-8''%; filename*=UTF-8''b", "b"),
        ]
    )
    func duplicates(field: String, name: String) {
        expect(ContentDisposition(field)?.fileName, equals: name)
    }

    @Test("TRF-2: a name in UTF-8 is read, also if its bytes were taken for ISO 8859-1")
    func rawBytes() throws {
        let name = "Übung – 日本.txt"
        let field = "attachment; filename=\"\(name)\""
        expect(ContentDisposition(field)?.fileName, equals: name)
        let mistaken = String(String.UnicodeScalarView(field.utf8.map { Unicode.Scalar($0) }))
        expect(mistaken != field && ContentDisposition(mistaken)?.fileName == name)
        // These bytes are not valid UTF-8, so they are read as ISO 8859-1.
        expect(ContentDisposition("attachment; filename=\"\u{FC}b.txt\"")?.fileName, equals: "üb.txt")
    }

    @Test(
        "TRF-2: names without quotes are read, and invalid parameters are skipped",
        arguments: [
            ("attachment; filename=my report [1](2).pdf ; size=3", "my report [1](2).pdf"),
            ("attachment; filename=", nil), ("attachment; filename", nil), ("attachment", nil), ("attachment;", nil),
            ("attachment; filename=\"a", nil), ("attachment; filename=\"a\\", nil),
            ("attachment; filename=\"a\"b", nil),
            ("attachment; ; =x; x; \"; y=\"1;2\" 3; filename=a", "a"),
            ("attachment; x=\"; filename=a\"; filename=b", "b"),
        ] as [(String, String?)]
    )
    func patience(field: String, name: String?) throws {
        try expect(#require(ContentDisposition(field)).fileName, equals: name)
    }

    @Test(
        "TRF-2: a field without a type is nil",
        arguments: ["", " ", ";", "filename=a", "\"attachment\"", "a b; c=d"]
    )
    func noType(field: String) {
        expect(ContentDisposition(field) == nil)
    }
}
