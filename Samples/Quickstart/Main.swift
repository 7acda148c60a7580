import EasyNetwork

@main struct Quickstart { static func main() {} }
