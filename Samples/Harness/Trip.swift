import EasyNetwork
import Foundation

struct Book: APIRequest {
    typealias Item = Void
    let what: String
    var api: String { "bookings/\(what)" }
    var method: NetworkService.Method { .post }
}

struct CancelBooking: APIRequest {
    typealias Item = Void
    let what: String
    var api: String { "bookings/\(what)" }
    var method: NetworkService.Method { .delete }
}

/// Books a flight, a hotel and a car. If one of them fails, the chain cancels the ones before it.
///
/// - Parameter isRefused: Whether the server refuses the car.
func bookTrip(isRefused: Bool, _ service: EasyNetworkService) -> ChainOperation {
    let trip = ChainOperation()
    for (what, name) in [("flight", "flight"), ("hotel", "hotel"), (isRefused ? "refused" : "car", "car")] {
        let booking = RequestOperation(Book(what: what), service: service)
        booking.name = name
        // A server with several users would find the booking by the item, or by the key if the response is lost.
        booking.undo = { _ in CancelBooking(what: what) }
        trip.addOperation(booking)
    }
    return trip
}
