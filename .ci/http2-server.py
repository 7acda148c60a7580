#!/usr/bin/env python3
"""An HTTP/2 server over TLS that rejects requests, counts what it processes, and ends with its standard input.

usage: http2-server.py CERTIFICATE KEY [NAME=VALUE…]     prints its port; needs h2

  goaway=N     ends a connection with its Nth request: GOAWAY names that one as the last
  graceful=1   sends GOAWAY twice as RFC 9113, section 6.8, advises: first it names no last request
  streams=N    announces MAX_CONCURRENT_STREAMS and refuses what is above
  refuse=N     refuses every Nth request, none more than three times
  refuse=all   refuses every request

`GET /counts` answers with JSON: how many times each request was processed, by method and path; how many were rejected;
how many connections there were, and how many at the same time. Every other request is answered with the number of its
connection.
"""
import collections, json, os, select, socket, ssl, sys, threading

import h2.config, h2.connection, h2.events
from hyperframe.frame import GoAwayFrame, SettingsFrame

options = dict(argument.split('=') for argument in sys.argv[3:])
goaway, streams = int(options.get('goaway', 0)), int(options.get('streams', 0))
refuse = options.get('refuse', '0')
lock = threading.Lock()
processed, rejected = collections.Counter(), collections.Counter()
requests = connections = open_now = most_open = 0


class Connection:
    def __init__(self, stream, number):
        self.stream, self.number = stream, number
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.names = {}  # of open requests, by stream
        self.complete = []  # streams of requests that were received whole
        self.refused = set()
        self.count = 0
        self.last = None  # of GOAWAY

    def run(self):
        self.h2.initiate_connection()
        # h2 would end the connection where a stream is above the limit; so it does not know of it.
        if streams: self.send(SettingsFrame(0, settings={SettingsFrame.MAX_CONCURRENT_STREAMS: streams}))
        self.flush()
        while True:
            data = self.stream.recv(65536)
            if not data: return
            for event in self.h2.receive_data(data): self.handle(event)
            # Takes what else has come before it answers, as the requests of one burst are open at the same time.
            if self.stream.pending() or select.select([self.stream], [], [], 0.002)[0]: continue
            self.answer()
            self.flush()
            if self.last is not None and not self.names: return self.end()

    def handle(self, event):
        stream = getattr(event, 'stream_id', None)
        if isinstance(event, h2.events.RequestReceived): self.accept(stream, dict(event.headers))
        elif isinstance(event, h2.events.DataReceived):
            # The window of a stream that is not read stays closed; that of the connection must open.
            self.h2.increment_flow_control_window(max(event.flow_controlled_length, 1))
        elif isinstance(event, h2.events.StreamEnded) and stream in self.names: self.complete.append(stream)
        elif isinstance(event, h2.events.StreamReset): self.names.pop(stream, None)

    def accept(self, stream, headers):
        global requests
        name = (headers[b':method'] + b' ' + headers[b':path']).decode()
        if name == 'GET /counts':
            self.names[stream] = name
            return
        with lock:
            requests += 1
            is_refused = refuse == 'all' or int(refuse) and requests % int(refuse) == 0 and rejected[name] < 3
            is_rejected = self.last is not None or is_refused or streams and len(self.names) >= streams
            if is_rejected: rejected[name] += 1
        if self.last is not None:
            return
        if is_rejected:
            self.refused.add(stream)
            return self.h2.reset_stream(stream, 7)
        self.names[stream] = name
        self.count += 1
        if self.count == goaway:
            self.flush()
            if 'graceful' in options: self.send(GoAwayFrame(0, last_stream_id=2**31 - 1))
            self.send(GoAwayFrame(0, last_stream_id=stream))
            self.last = stream

    def answer(self):
        for stream in self.complete:
            name = self.names.pop(stream, None)
            if name is None: continue
            if name == 'GET /counts':
                with lock:
                    text = json.dumps({'processed': processed, 'rejected': sum(rejected.values()),
                                       'connections': connections, 'mostConnections': most_open})
            else:
                with lock: processed[name] += 1
                text = str(self.number)
            self.h2.send_headers(stream, [(':status', '200'), ('content-length', str(len(text)))])
            # A frame has a limit; the clients' windows are far larger than the counts.
            for start in range(0, len(text), 16_000): self.h2.send_data(stream, text[start:start + 16_000].encode())
            self.h2.end_stream(stream)
        self.complete = []

    def end(self):
        # With bytes that nobody reads, the system would reset the connection, and GOAWAY be lost.
        try: self.stream = self.stream.unwrap()
        except (OSError, ValueError): pass
        self.stream.shutdown(socket.SHUT_WR)
        while self.stream.recv(65536): pass

    def send(self, frame):
        self.flush()
        self.stream.sendall(frame.serialize())

    def flush(self):
        self.stream.sendall(self.h2.data_to_send())


def serve(stream, number):
    global open_now, most_open
    with lock:
        open_now += 1
        most_open = max(most_open, open_now)
    try:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(stream, server_side=True)
        Connection(stream, number).run()
    except OSError: pass
    finally:
        with lock: open_now -= 1
        stream.close()


def accept():
    global connections
    while True:
        stream, _ = listener.accept()
        with lock:
            connections += 1
            number = connections
        threading.Thread(target=serve, args=(stream, number), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:3])
context.set_alpn_protocols(['h2'])
listener = socket.create_server(('127.0.0.1', 0), backlog=1000)
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
os._exit(0)
