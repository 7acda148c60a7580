extension QueryEncoder {
    /// How an array of plain values is written. An array that holds arrays or dictionaries always has indices.
    public enum ArrayStyle: Hashable, Sendable {
        /// `a[]=1&a[]=2`, the default.
        case brackets
        /// `a=1&a=2`.
        case repeated
        /// `a[0]=1&a[1]=2`.
        case indices
    }

    /// How a Bool is written.
    public enum BoolStyle: Hashable, Sendable {
        /// `true` and `false`, the default.
        case words
        /// `1` and `0`.
        case numbers
    }

    /// How a Date is written. All have a precision of a millisecond and hold for the years 0 to 9999.
    public enum DateStyle: Hashable, Sendable {
        /// `2026-07-01T12:00:00Z`, in UTC, with milliseconds if there are any; the default (RFC 3339).
        case iso8601
        /// `1782907200`, with a fraction if there is one; in JSON a number.
        case secondsSince1970
        /// `1782907200000`; in JSON a number.
        case millisecondsSince1970
        /// A pattern as `DateFormatter` has it, `yyyy-MM-dd`, in UTC, in the Gregorian calendar, in English.
        case pattern(String)
    }

    /// How a Data is written.
    public enum DataStyle: Hashable, Sendable {
        /// RFC 4648, section 4; the default.
        case base64
        /// RFC 4648, section 5, with `-` and `_` and no padding.
        case base64URL
        /// Two digits a byte, in lower case.
        case hexadecimal
    }

    /// How nil and `NSNull` are written.
    public enum NullStyle: Hashable, Sendable {
        /// `a`, the default: told apart from an empty text.
        case key
        /// `a=`.
        case empty
        /// `a=null`.
        case word
        /// Not at all. The others in an array keep their indices.
        case omitted
    }

    /// How a space is written.
    public enum SpaceStyle: Hashable, Sendable {
        /// As the flavour has it, the default: `%20` in a query, `+` in a form.
        case flavour
        /// `%20`, which every reader takes for a space.
        case percent
        /// `+`, which most readers of queries take for a space.
        case plus
    }

    /// How the keys of a dictionary in a dictionary are written.
    public enum KeyStyle: Hashable, Sendable {
        /// `a[b]=1`, the default.
        case brackets
        /// `a.b=1`. A key with a dot in it cannot be told from two.
        case dots
    }

    /// What is encoded, and how.
    public enum Flavour: Hashable, Sendable {
        /// All but the unreserved characters of RFC 3986, section 2.3; a space is `%20`.
        case url
        /// As WHATWG's URL standard defines application/x-www-form-urlencoded; a space is `+`.
        case form
    }
}
