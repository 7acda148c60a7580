import Foundation
import Testing

@testable import EasyNetwork

/// Self-signed certificates, valid from 2020 to 2120, with the digests of their keys from openssl.
struct TestCertificate: Sendable, CustomStringConvertible {
    let description: String
    let pem: String
    /// SHA-256 of the SubjectPublicKeyInfo, in base64.
    let keyDigest: String
    /// The length of the key in the certificate, without its algorithm; nil for one that Apple's platforms do not know.
    let keyLength: Int?
    /// The bytes before the key: the end of its algorithm, the tag and the length of a bit string, and no unused bits.
    let beforeKey: [UInt8]

    var der: Data {
        get throws { try #require(TLSConfiguration.certificates(inPEM: Data(pem.utf8)).first) }
    }

    /// The key as Apple's Security gives it.
    var key: Data? {
        get throws {
            guard let keyLength else { return nil }
            let der = try der
            let start = try #require(der.range(of: Data(beforeKey))).upperBound
            return der[start..<start + keyLength]
        }
    }

    static let all = [rsa, elliptic, edwards, versionOne]

    static let rsa = TestCertificate(
        description: "RSA 2048",
        pem: """
            -----BEGIN CERTIFICATE-----
            MIIDBjCCAe6gAwIBAgIUNgATQQm5J9z+jcAWdV5FMQ7BFh4wDQYJKoZIhvcNAQEL
            BQAwFjEUMBIGA1UEAwwLcnNhLmV4YW1wbGUwIBcNMjAwMTAxMDAwMDAwWhgPMjEy
            MDAxMDEwMDAwMDBaMBYxFDASBgNVBAMMC3JzYS5leGFtcGxlMIIBIjANBgkqhkiG
            9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtQUshu2kkK8NFsU6P7jNRcNwGYXCzYr6U/nW
            9Xu3uElacb3l613bRst1RWepv2i1KuoWk3MqksI2Ox+ieBvUO8R5pDu7xoQfqwAI
            YittioLwZUeOZdeDRDvJ4V17E8IBjmLZtOlSYat1jL/b9rBxGXX4ZFTpS+en79Jx
            dRfqkd5gMjoTkXSiCaFiROV+Rn8C00lzn6iGSlKyRLhaiTPwyRPKGND+9NqBxtVS
            FZWG9+ecMxF5nEJI3BVGqAWcAV0AzfP2lD3+Uo/aXU/jZH0NybQihnbcXKEZ0If1
            knpvSElrgAq2EWseSIJFAd8MdfJ4kZI89G7XCS5eKkPH7dPuLwIDAQABo0owSDAP
            BgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBTatuTPC8y4Vb37NI0zSMENB02ivzAW
            BgNVHREEDzANggtyc2EuZXhhbXBsZTANBgkqhkiG9w0BAQsFAAOCAQEArJ9JDQt2
            KtEPpKSxNeIw27TiyMu5XP85E8mxAWwieMtOg0hXdSFcKucOtfQoOrXqNoG/BVrI
            8ZQ+nfYKaMT0BDXnej4C2Oe8VmkkyZA6XhYYcSdorFZI7KAPNEI2QQd20oLtRjnO
            A2einSCedqcpOr45N7Jn+7seOx551PcV2AK4eu7txBWwNAtkzeb9a5wGrb9gtyyP
            wdbK42mg/UzhT738wEM0CHdrTsrGHeM0ggX9nsVvinD2ItJKPpSYAM9QEA7/k66L
            Y/KYIE8OcSjCTZru4i8ano0nQRod55HTT2ry126NtL769/5pifUA4PWbK6Zrm0Fv
            PrkOINGw/RiR3Q==
            -----END CERTIFICATE-----
            """,
        keyDigest: "z5UxGnpFwdf1yxqnzsL03EL2nKkX81kwJc2hiy+OIWA=",
        keyLength: 270,
        beforeKey: [0x05, 0x00, 0x03, 0x82, 0x01, 0x0F, 0x00]
    )

    static let elliptic = TestCertificate(
        description: "EC P-256",
        pem: """
            -----BEGIN CERTIFICATE-----
            MIIBeDCCAR2gAwIBAgIUf46rUWxi2YTQ9mMrENAQpcY18hUwCgYIKoZIzj0EAwIw
            FTETMBEGA1UEAwwKZWMuZXhhbXBsZTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEw
            MTAwMDAwMFowFTETMBEGA1UEAwwKZWMuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqG
            SM49AwEHA0IABEowwtDlT/Gj4bRPMIU22AyavBqJUFUtY4Sm8X2w9qb8r+kZs7z7
            FGQPpzzkZP1+FxscqZ6JWxvQNfdpOTUGfbWjSTBHMA8GA1UdEwEB/wQFMAMBAf8w
            HQYDVR0OBBYEFKufRY3vxviUFzPxk7Q6nuu7pkXqMBUGA1UdEQQOMAyCCmVjLmV4
            YW1wbGUwCgYIKoZIzj0EAwIDSQAwRgIhAMZLPxqLAVJffmXvmynpQNGXdOuaKTRx
            ek3Za6E1EMa8AiEAj7TD/rXzv3CfEOIk2RO8dKTrI6i0OSJhTpxJGkAVbOk=
            -----END CERTIFICATE-----
            """,
        keyDigest: "jyteoGLVvzBne1p1loZZeTjg3yTNjXI0xijixXm6fyw=",
        keyLength: 65,
        beforeKey: [0x03, 0x01, 0x07, 0x03, 0x42, 0x00]
    )

    static let edwards = TestCertificate(
        description: "Ed25519",
        pem: """
            -----BEGIN CERTIFICATE-----
            MIIBNjCB6aADAgECAhQamJjBFZO3OhqHySWFAuFzMnVJ0jAFBgMrZXAwFTETMBEG
            A1UEAwwKZWQuZXhhbXBsZTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAw
            MFowFTETMBEGA1UEAwwKZWQuZXhhbXBsZTAqMAUGAytlcAMhAGu6GbgKgwThSWAa
            D4nt1L8pYMGXENNFoTprq/v45z55o0kwRzAPBgNVHRMBAf8EBTADAQH/MB0GA1Ud
            DgQWBBTgMs0Oy4yuMlIqUpidCbfXkXfdgzAVBgNVHREEDjAMggplZC5leGFtcGxl
            MAUGAytlcANBAJ8k8u+M4fF7pjs6noUU6I7YhzTvScMyoadhcpA9PSBy3Um4ctC1
            cE7RM3eFaURgvmFeIkcddGpbTNf5ivuVvAU=
            -----END CERTIFICATE-----
            """,
        keyDigest: "BMZ+wjfjuVhmswidU/KUhcayQoTr4zMPTjEF/n3ayXY=",
        keyLength: nil,
        beforeKey: []
    )

    static let versionOne = TestCertificate(
        description: "EC P-256, version 1",
        pem: """
            -----BEGIN CERTIFICATE-----
            MIIBJjCBzQIUZD2vOK75Z0f12O2GEKKsLUukBd8wCgYIKoZIzj0EAwIwFTETMBEG
            A1UEAwwKdjEuZXhhbXBsZTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAw
            MFowFTETMBEGA1UEAwwKdjEuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
            A0IABIa07pPdDtaePVjcC6rr9CzsbWOAYh8PUHzm/kV9T6xqABq39hIAhdp4HrTU
            Kv1qOHwQDqHQfWr2YkbSAS6i+rswCgYIKoZIzj0EAwIDSAAwRQIhAJ1etaJEHtqq
            z38cVc3wrQ9WXQhbA00rcUqEbBUP9bSZAiAsNU1OomKkSz0n0YmnZlmGTjb/Kmd0
            OwTpzq/Tt+ZQ+Q==
            -----END CERTIFICATE-----
            """,
        keyDigest: "9zOi21fK/EiKPw1ZzI7dh8nPtIy7R43indpeGb0q7pw=",
        keyLength: 65,
        beforeKey: [0x03, 0x01, 0x07, 0x03, 0x42, 0x00]
    )
}
