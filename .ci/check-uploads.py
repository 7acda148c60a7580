#!/usr/bin/env python3
"""Kills the program Writer while it uploads to tuspyserver, and compares the files and the number of bytes sent.

usage: check-uploads.py WRITER FOLDER KILLS
"""
import fcntl, hashlib, os, random, signal, socket, subprocess, sys, tempfile, threading, time

WRITER, WORK, KILLS = sys.argv[1], sys.argv[2], int(sys.argv[3])
# A few kills of a small upload are enough for a quick check.
TOTAL, PART = 200_000_000 if KILLS > 9 else 50_000_000, 8_388_608
APP = """
import sys, uvicorn
from fastapi import FastAPI
from tuspyserver import create_tus_router
app = FastAPI()
app.include_router(create_tus_router(prefix="files", files_dir=sys.argv[1]))
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


# The longest time in seconds that a life of the program, or the server after its kill, may take.
LIMIT = 120


class Relay:
    """Passes connections on to a server, and counts the bytes that clients send."""

    def __init__(self, port):
        self.target, self.count, self.open, self.lock = port, 0, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.open += 1
            threading.Thread(target=self.copy, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, False), daemon=True).start()

    def copy(self, source, target, is_request):
        try:
            while data := source.recv(262_144):
                if is_request:
                    with self.lock:
                        self.count += len(data)
                target.sendall(data)
        except OSError:
            pass
        # The server sees that a client has gone, and ends the connection in its turn.
        for one, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
            try:
                one.shutdown(how)
            except OSError:
                pass
        if not is_request:
            with self.lock:
                self.open -= 1
            source.close()


def can_connect(port):
    with socket.socket() as client:
        # Without a listener, the system can choose this port for the client too, and connect it to itself.
        return client.connect_ex(("127.0.0.1", port)) == 0 and client.getsockname()[1] != port


def wait(what, condition):
    """Waits until a condition holds, at most LIMIT seconds."""
    deadline = time.time() + LIMIT
    while not condition():
        if time.time() > deadline:
            sys.exit(f"{what} took more than {LIMIT} seconds")
        time.sleep(0.0005)


def has_locks(folder):
    """Returns whether the server holds the lock of a file."""
    for name in os.listdir(folder) if os.path.exists(folder) else []:
        try:
            with open(f"{folder}/{name}") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass
        except BlockingIOError:
            return True
    return False


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(at_once, kills, generator):
    """Uploads as many files as run at once, again and again, until there were so many kills."""
    killed, rounds, worst = 0, 0, 0
    while killed < kills:
        rounds += 1
        folder = tempfile.mkdtemp(dir=WORK)
        os.mkdir(folder + "/files")
        os.mkdir(folder + "/server")
        size = TOTAL // at_once
        for number in range(at_once):
            with open(f"{folder}/files/{number}", "wb") as file:
                file.write(random.Random(number).randbytes(size))
        port = free_port()
        with open(folder + "/log", "w") as log:
            command = [sys.executable, "-c", APP, folder + "/server", str(port)]
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait("The start of the server", lambda: can_connect(port))
            relay, in_round = Relay(port), 0
            while True:
                command = [WRITER, "upload", folder, str(at_once), "tus", f"http://127.0.0.1:{relay.port}/files"]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                # Some lives end before the first part, others after several.
                limit = relay.count + generator.randrange(0, 5 * PART)
                wait("A life of the program", lambda: process.poll() is not None or relay.count >= limit)
                time.sleep(generator.random() * 0.05)
                process.send_signal(signal.SIGKILL)
                said = process.communicate()[0]
                if "failed" in said:
                    sys.exit(f"{at_once} at once: {said}\n{open(folder + '/log').read()}")
                if process.returncode == 0:
                    break
                in_round += 1
                # tuspyserver waits for the lock of a file on the only thread of the process that must release it. If it
                # has not noticed yet that a client has gone, it stands still for 30 seconds, for every file.
                wait("The server after a kill", lambda: not relay.open and not has_locks(folder + "/server/.locks"))
        finally:
            server.kill()
            server.wait()
        killed += in_round
        wanted = sorted(digest(f"{folder}/files/{number}") for number in range(at_once))
        stored = [name for name in os.listdir(folder + "/server") if "." not in name]
        # An upload whose creation was interrupted before the journal had its address is left behind, empty.
        found = sorted(digest(f"{folder}/server/{name}") for name in stored if os.path.getsize(f"{folder}/server/{name}"))
        if wanted != found:
            sys.exit(f"{at_once} at once: the files differ: {found} instead of {wanted}")
        twice = relay.count - at_once * size
        # Heads of messages are counted too.
        if twice > in_round * at_once * PART + 1_000_000:
            sys.exit(f"{at_once} at once: {twice} bytes were sent twice in {in_round} kills")
        worst = max(worst, twice / max(1, in_round * at_once) / PART)
        subprocess.run(["rm", "-rf", folder])
    print(f"{at_once} at once: {killed} kills in {rounds} rounds; at most {worst:.2f} parts twice for each kill and file")


for at_once in (1, 2, 6):
    run(at_once, KILLS, random.Random(at_once))
