#!/usr/bin/env python3
"""Sends the load of the program Load to real servers, and compares what came back with what the servers have counted.

usage: check-servers.py LOAD [short|long]

A request that failed is lost; one that a server has counted twice was sent twice. Either is a failure. Some servers cut a
connection on which a request goes out, and do not say whether they have seen it (`may_cut`). Such a request must not go
out again if its method is unsafe: those are reported, and none may be counted twice. Servers that are not installed are
skipped, and named.

Servers and proxies that want a password get a right or a wrong one, in Digest or Basic: a right one is accepted, a wrong
one goes out once for each request, and a proxy that refuses a tunnel is named with its status and reason.
"""
import collections, ctypes, hashlib, http.server, importlib.util, json, os, re, shutil, signal, socket, subprocess, sys, tempfile
import threading, time, urllib.parse

LOAD, HOW_MUCH = sys.argv[1], (sys.argv[2:] or ['short'])[0]
HERE = os.path.dirname(os.path.abspath(__file__))
COUNT, AT_ONCE = (3200, (6, 16, 64)) if HOW_MUCH == 'long' else (600, (16,))
os.environ['PATH'] += ':/usr/sbin'
work = tempfile.mkdtemp(prefix='servers-')
os.chmod(work, 0o755)
PASSWORD, REALM = 'geh€im', 'office'
CERTIFICATE, KEY = work + '/certificate.pem', work + '/key.pem'
failures, skipped = [], []


class Server:
    """A server of one kind; `port` is where it listens, `counts()` what it has answered by method and path."""
    programs = ()  # what must be installed
    user = 'Jürgen Ø'

    def __init__(self, **options):
        self.options = options
        self.folder = tempfile.mkdtemp(dir=work)
        os.chmod(self.folder, 0o777)
        self.log = self.folder + '/log'
        self.port = free_port()
        self.process = None

    def file(self, name, text):
        with open(f'{self.folder}/{name}', 'w') as file: file.write(text)
        return f'{self.folder}/{name}'

    def spawn(self, *words, **more):
        with open(self.folder + '/output', 'a') as output:
            self.process = subprocess.Popen(words, stdout=output, stderr=output, cwd=self.folder, **more)
        until(lambda: can_connect(self.port) or self.process.poll() is not None, f'{words[0]} does not listen')
        if self.process.poll() is not None: raise RuntimeError(open(self.folder + '/output').read())

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try: self.process.wait(20)
            except subprocess.TimeoutExpired: self.process.kill()

    def restart(self):
        """Lets requests that came be answered, and has new workers take the others."""

    def may_cut(self):
        """Over HTTP/2 a server says which requests it has not processed."""
        return 'restarts' in self.options and self.options['by'] != 'h2'

    def dropped_count(self):
        """How many lines of its log the server says it has not written."""
        return 0

    def counts(self):
        """The server writes its log a little after it has answered."""
        counts = collections.Counter()
        for line in open(self.log, errors='replace'):
            words = line.split()
            # HAProxy writes the whole URL of a request over HTTP/2.
            if len(words) >= 3 and words[-1] == '200': counts[f'{words[0]} /{words[1].rsplit("/", 1)[-1]}'] += 1
        return counts

    def refusals(self):
        """How many messages were answered 401 or 407."""
        return sum(line.split()[-1:] in (['401'], ['407']) for line in open(self.log, errors='replace'))

    def passwords(self, algorithm='md5'):
        """A file of users for Digest."""
        secret = ':'.join([self.user, REALM, PASSWORD]).encode()
        return self.file('users', f'{self.user}:{REALM}:{hashlib.new(algorithm, secret).hexdigest()}\n')

    def plain_passwords(self):
        """A file of users for Basic."""
        words = ['openssl', 'passwd', '-apr1', PASSWORD]
        return self.file('users', self.user + ':' + subprocess.run(words, check=True, capture_output=True, text=True).stdout)


class Nginx(Server):
    programs = 'nginx',

    def start(self):
        http2 = 'http2_max_concurrent_streams %d;' % self.options.get('streams', 128)
        flags = {'http': '', 'https': ' ssl', 'h2': ' ssl http2'}[self.options['by']]
        requests = self.options.get('requests', 1000)
        self.file('nginx.conf', f'''
            daemon off; worker_processes 2; pid {self.folder}/pid; error_log {self.folder}/error;
            events {{ worker_connections 1024; }}
            http {{
                log_format counted '$request_method $uri $status';
                access_log {self.log} counted;
                client_body_temp_path {self.folder}/1; proxy_temp_path {self.folder}/2;
                fastcgi_temp_path {self.folder}/3; uwsgi_temp_path {self.folder}/4; scgi_temp_path {self.folder}/5;
                keepalive_requests {requests}; {http2}
                ssl_certificate {CERTIFICATE}; ssl_certificate_key {KEY};
                server {{ listen unix:{self.folder}/s; access_log off; location / {{ return 200 "ok"; }} }}
                server {{
                    listen 127.0.0.1:{self.port}{flags};
                    location / {{
                        proxy_method GET; proxy_pass_request_body off; proxy_set_header Content-Length "";
                        proxy_pass http://unix:{self.folder}/s:/;
                    }}
                }}
            }}''')
        self.spawn('nginx', '-c', self.folder + '/nginx.conf', '-e', self.folder + '/error')

    def restart(self): self.process.send_signal(signal.SIGHUP)


class Apache(Server):
    programs = 'apache2',

    def start(self):
        modules = '/usr/lib/apache2/modules'
        by = self.options['by']
        tls = '' if by == 'http' else f'SSLEngine on\nSSLCertificateFile {CERTIFICATE}\nSSLCertificateKeyFile {KEY}'
        protocols = 'Protocols h2\nH2MaxSessionStreams %d' % self.options.get('streams', 100) if by == 'h2' else ''
        names = ['mpm_event', 'authz_core', 'lua', 'ssl', 'http2', 'socache_shmcb']
        wants = self.options.get('wants')
        if wants: names += ['authn_core', 'authn_file', 'authz_user', 'auth_digest', 'auth_basic']
        users = '' if not wants else f'''
<Location />
AuthType {wants}
AuthName "{REALM}"
{"AuthDigestProvider" if wants == 'Digest' else "AuthBasicProvider"} file
AuthUserFile {self.passwords() if wants == 'Digest' else self.plain_passwords()}
Require valid-user
</Location>'''
        loads = '\n'.join(f'LoadModule {name}_module {modules}/mod_{name}.so' for name in names)
        # What serves files answers before it has read the body, and then resets the stream.
        script = self.file('handle.lua', '''
            function handle(request)
                request:requestbody()
                request.content_type = 'text/plain'
                request:puts('ok')
                return apache2.OK
            end''')
        configuration = self.file('apache.conf', f'''
{loads}
ServerRoot {self.folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{self.port}
PidFile {self.folder}/pid
DefaultRuntimeDir {self.folder}
Mutex file:{self.folder} default
ErrorLog {self.folder}/error
LogFormat "%m %U %s" counted
CustomLog {self.log} counted
KeepAlive On
MaxKeepAliveRequests {self.options.get('requests', 100)}
StartServers 2
ServerLimit 4
# If all threads of a child are busy, it closes the connections that it keeps, also those on which a request comes.
ThreadLimit 100
ThreadsPerChild 100
MaxRequestWorkers 400
MaxSpareThreads 400
LuaMapHandler ^/ {script} handle
{protocols}
{tls}
{users}
<Directory {self.folder}>
Require all granted
</Directory>
''')
        self.spawn('apache2', '-f', configuration, '-DFOREGROUND', env={**os.environ, 'LANG': 'C'})

    def restart(self): self.process.send_signal(signal.SIGUSR1)

    def may_cut(self): return 'restarts' in self.options  # its GOAWAY names streams that it does not answer


class Lighttpd(Server):
    programs = 'lighttpd',

    def start(self):
        by = self.options['by']
        tls = '' if by == 'http' else f'''
server.modules += ("mod_openssl")
ssl.engine = "enable"
ssl.pemfile = "{CERTIFICATE}"
ssl.privkey = "{KEY}"
'''
        algorithm = self.options.get('wants')
        users = '' if not algorithm else f'''
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{self.passwords(algorithm.replace('-', '').lower())}"
auth.require = ("" => ("method" => "digest", "realm" => "{REALM}", "algorithm" => "{algorithm}",
    "require" => "valid-user"))
'''
        # What serves files answers before it has read the body, and then resets the stream; a proxy reads it first.
        self.behind = Backend(('127.0.0.1', 0), Behind)
        threading.Thread(target=self.behind.serve_forever, daemon=True).start()
        self.spawn('lighttpd', '-D', '-f', self.file('lighttpd.conf', f'''
server.modules = ({'"mod_auth", "mod_authn_file", ' if algorithm else ''}"mod_proxy", "mod_accesslog")
{users}
{tls}
server.bind = "127.0.0.1"
server.port = {self.port}
server.document-root = "{self.folder}"
server.errorlog = "{self.folder}/error"
server.max-keep-alive-requests = {self.options.get('requests', 1000)}
server.feature-flags += ("server.h2proto" => "{'enable' if by == 'h2' else 'disable'}",
    "server.graceful-restart-bg" => "enable", "server.graceful-shutdown-timeout" => 10)
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {self.behind.server_port})))
accesslog.filename = "{self.log}"
accesslog.format = "%m %U %s"
'''))

    def stop(self):
        super().stop()
        self.behind.shutdown()


class Backend(http.server.ThreadingHTTPServer):
    request_queue_size = 1000  # with five, the system lets some of a burst wait for a minute


class Behind(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')

    do_POST = do_GET

    def log_message(self, *_): pass


class HAProxy(Server):
    programs = 'haproxy',
    dropped_before = 0

    def start(self):
        by = self.options['by']
        tls = '' if by == 'http' else f' ssl crt {self.folder}/pem alpn ' + ('h2' if by == 'h2' else 'http/1.1')
        self.file('pem', open(CERTIFICATE).read() + open(KEY).read())
        self.configuration = self.file('haproxy.cfg', f'''
global
    log stdout format raw local0
    stats socket {self.folder}/admin
    tune.h2.max-concurrent-streams {self.options.get('streams', 100)}
    hard-stop-after 10s
defaults
    mode http
    timeout client 30s
    timeout connect 5s
    timeout server 30s
    timeout http-keep-alive 30s
frontend counted
    bind 127.0.0.1:{self.port}{tls}
    log global
    log-format "%HM %HP %ST"
    option http-buffer-request
    http-request return status 200 content-type text/plain string ok
''')
        self.log = self.folder + '/output'
        # The master starts new workers, and the old ones end when their connections do.
        self.spawn('haproxy', '-W', '-db', '-f', self.configuration)

    def dropped_count(self):
        return self.dropped_before + self.count_dropped()

    def count_dropped(self):
        """Of the newest worker."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(self.folder + '/admin')
            admin.sendall(b'show info\n')
            text = b''.join(iter(lambda: admin.recv(65536), b'')).decode()
        return int(re.search(r'^DroppedLogs: (\d+)', text, re.M)[1])

    def restart(self):
        self.dropped_before += self.count_dropped()
        self.process.send_signal(signal.SIGUSR2)


class Node(Server):
    programs = 'node',

    def start(self):
        self.spawn('node', '-e', NODE, str(self.port), self.log, CERTIFICATE, KEY, self.options['by'],
                   str(self.options.get('streams', 100)), str(self.options.get('requests', 0)))


# Ends a connection with the Nth request: over HTTP/1.1 by `Connection: close`, over HTTP/2 by GOAWAY.
NODE = r'''
const [port, log, certificate, key, by, streams, requests] = process.argv.slice(1);
const fs = require('fs'), options = () => ({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) });
const lines = fs.createWriteStream(log, { flags: 'a' });
function answer(request, response) {
  request.resume().on('end', () => {
    lines.write(`${request.method} ${request.url} 200\n`);
    response.end('ok');
  });
}
let server;
if (by === 'h2') {
  server = require('http2').createSecureServer({ ...options(), settings: { maxConcurrentStreams: +streams } }, answer);
  server.on('session', (session) => {
    let count = 0;
    session.on('error', () => {});
    session.on('stream', () => { if (++count === +requests) session.close(); });
  });
} else {
  server = by === 'http' ? require('http').createServer(answer) : require('https').createServer(options(), answer);
  server.keepAliveTimeout = 60000;
  server.maxRequestsPerSocket = +requests;
}
server.listen(+port, '127.0.0.1');
'''


class Scripted(Server):
    """`.ci/http2-server.py`."""
    programs = 'curl',

    def start(self):
        words = [f'{name}={value}' for name, value in self.options.items() if name != 'by']
        self.process = subprocess.Popen([sys.executable, HERE + '/http2-server.py', CERTIFICATE, KEY, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def counts(self):
        text = subprocess.run(['curl', '-s', '--cacert', CERTIFICATE, f'https://127.0.0.1:{self.port}/counts'],
                              check=True, capture_output=True).stdout
        return collections.Counter(json.loads(text)['processed'])


class Squid(Server):
    """A proxy before an nginx, which counts: plain requests are passed on, those over TLS go through tunnels."""
    programs = 'squid', 'nginx'
    # A recent libcurl sends a name beyond ASCII percent-encoded in Digest; squid makes names in Basic lower case.
    user = 'ada lovelace'

    def start(self):
        self.behind = Nginx(**self.options)
        self.behind.start()
        self.target = self.behind.port if self.options.get('target') != 'dead' else free_port()
        wants = self.options.get('wants')
        programs = {'Digest': '/usr/lib/squid/digest_file_auth -c', 'Basic': '/usr/lib/squid/basic_ncsa_auth'}
        users = '' if not wants else f'''
auth_param {wants.lower()} program {programs[wants]} {self.passwords() if wants == 'Digest' else self.plain_passwords()}
auth_param {wants.lower()} realm {REALM}
acl known proxy_auth REQUIRED
http_access deny !known
'''
        self.spawn('squid', '-N', '-f', self.file('squid.conf', f'''
http_port 127.0.0.1:{self.port}
{users}
acl there port {self.target}
http_access {'deny' if self.options.get('target') == 'denied' else 'allow'} there
http_access deny all
cache deny all
pid_filename {self.folder}/pid
logformat counted %rm %ru %>Hs
access_log stdio:{self.log} counted
cache_log {self.folder}/cache.log
coredump_dir {self.folder}
shutdown_lifetime 1 seconds
visible_hostname localhost
'''))

    def stop(self):
        super().stop()
        self.behind.stop()

    def may_cut(self): return self.options['by'] == 'h2'  # a tunnel that is cut loses what GOAWAY and responses say

    def counts(self): return self.behind.counts()


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def can_connect(port):
    with socket.socket() as client:
        # Without a listener, the system can choose this port for the client too, and connect it to itself.
        return client.connect_ex(('127.0.0.1', port)) == 0 and client.getsockname()[1] != port


def until(condition, problem, limit=60):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end: raise RuntimeError(problem)
        time.sleep(0.02)


def run(server, at_once, count=COUNT, password=None, once=False, error=None):
    """One load on a new server. Returns a line, and notes the failures.

    With `error`, each request has to end with it: a code and words of the message.
    """
    by, environment = server.options['by'], {k: v for k, v in os.environ.items() if not k.lower().endswith('_proxy')}
    scheme = 'http' if by == 'http' else 'https'
    port = server.port
    if isinstance(server, Squid):
        port = server.target
        user = f'{urllib.parse.quote(server.user)}:{urllib.parse.quote(password)}@' if password else ''
        environment[scheme + '_proxy'] = f'http://{user}127.0.0.1:{server.port}'
    restarts = server.options.get('restarts', 0)
    # A server behind a proxy asks for nothing, so that it may be given anything.
    words = [server.user, password, 'once'] if once else [server.user, password] if password else []
    client = subprocess.Popen([LOAD, f'{scheme}://127.0.0.1:{port}', str(count), str(at_once), CERTIFICATE, *words],
                              stdout=subprocess.PIPE, text=True, env=environment)
    # Restarts by what was answered, not by the clock.
    for number in range(restarts):
        until(lambda: sum(server.counts().values()) >= count * (number + 1) // (restarts + 1) or client.poll() is not None,
              'the load does not go on', 300)
        server.restart()
    output, _ = client.communicate(timeout=600)
    results = [line.split(' ', 5) for line in output.splitlines()]
    fine = [f'{line[0]} /{line[1]}' for line in results if line[2] == '200']
    # lighttpd writes its log every four seconds, when it has time.
    try: until(lambda: set(fine) <= set(server.counts()), '', 60)
    except RuntimeError: pass
    counts = server.counts()
    if error:
        code, reason = error
        wrong = [' '.join(line) for line in results if line[2] != code or reason not in ' '.join(line[5:])]
        if sum(counts.values()): wrong.append(f'{sum(counts.values())} answered')
        if server.refusals() > 2 * count: wrong.append(f'{server.refusals()} refused of {count}')
        if len(results) != count: wrong.append(f'{len(results)} results of {count}')
        return f'{count - len(wrong)} of {count} {code} {reason}', wrong
    lost = [' '.join(line) for line in results if line[2] != '200']
    empty = [f'{line[0]} /{line[1]}: no body' for line in results if line[2] == '200' and line[5] == '0 bytes']
    unknown = [line for line in lost if ' perhaps ' in line] if server.may_cut() else []
    lost = [line for line in lost if line not in unknown]
    twice = [f'{name}: {count} times' for name, count in counts.items() if count > 1]
    uncounted = [name for name in fine if not counts[name]]
    if len(uncounted) <= server.dropped_count(): uncounted = []
    problems = lost + twice + empty + [f'{name}: not counted' for name in uncounted]
    if len(results) != count: problems.append(f'{len(results)} results of {count}')
    text = f'{len(fine)} of {count} answered once, {at_once} at a time'
    if unknown: text += f', {len(unknown)} of unknown fate'
    if problems: text += f'; {len(lost)} lost, {len(twice)} twice'
    return text, problems


def password_cases():
    """A server or proxy that wants a password, and what becomes of a wrong one and, if anything, of the right one."""
    refused = 'unauthorized', ''
    for kind, name, wants in ((Apache, 'apache', 'Digest'), (Lighttpd, 'lighttpd', 'MD5'), (Lighttpd, 'lighttpd', 'SHA-256')):
        yield name, kind, dict(by='http', wants=wants), refused, None
    yield 'apache', Apache, dict(by='https', wants='Basic'), refused, None
    for wants in ('Digest', 'Basic'):
        yield 'squid', Squid, dict(by='http', wants=wants), ('unacceptableStatus', ''), None
        wrong = 'cannotConnect', 'the proxy refused the user and the password: 407 Proxy Authentication Required'
        for by in ('https', 'h2'): yield 'squid', Squid, dict(by=by, wants=wants), wrong, None
        for target, reason in (('denied', '403 Forbidden'), ('dead', '503 Service Unavailable')):
            options = dict(by='https', wants=wants, target=target)
            yield 'squid', Squid, options, wrong, ('cannotConnect', 'the proxy refused a tunnel: ' + reason)


def cases():
    for by in ('http', 'https', 'h2'):
        yield 'nginx', Nginx, dict(by=by, requests=20)
        yield 'nginx', Nginx, dict(by=by, requests=1000)
        yield 'nginx', Nginx, dict(by=by, restarts=3)
        yield 'apache', Apache, dict(by=by, requests=20)
        yield 'apache', Apache, dict(by=by, restarts=2)
        yield 'lighttpd', Lighttpd, dict(by=by, requests=20)
        yield 'haproxy', HAProxy, dict(by=by)
        yield 'haproxy', HAProxy, dict(by=by, restarts=2)
        yield 'squid', Squid, dict(by=by, requests=50)
        yield 'node', Node, dict(by=by, requests=20)
    for streams in (1, 4):
        yield 'nginx', Nginx, dict(by='h2', streams=streams, requests=100)
        yield 'apache', Apache, dict(by='h2', streams=streams)
        yield 'haproxy', HAProxy, dict(by='h2', streams=streams)
        yield 'node', Node, dict(by='h2', streams=streams, requests=50)
        yield 'scripted', Scripted, dict(by='h2', streams=streams)
    yield 'scripted', Scripted, dict(by='h2', goaway=50)
    yield 'scripted', Scripted, dict(by='h2', goaway=50, graceful=1)
    library = ctypes.CDLL(os.environ.get('EASYNETWORK_LIBCURL') or 'libcurl.so.4')
    library.curl_version.restype = ctypes.c_char_p
    version = library.curl_version().decode().split()[0]
    if [int(part) for part in re.findall(r'\d+', version)] >= [8, 3]: yield 'scripted', Scripted, dict(by='h2', refuse=7)
    else: skipped.append(f'refused streams, which {version} does not report')


def attempt(title, kind, options, at_once, **more):
    """Starts a server, sends the load, and prints the outcome."""
    server = kind(**options)
    try:
        try: server.start()
        except RuntimeError:
            # Another program may have taken the port.
            server.stop()
            server = kind(**options)
            server.start()
        text, problems = run(server, at_once, **more)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        text, problems = 'no result', [f'{type(error).__name__}: {error}']
    finally: server.stop()
    print(f'{"failed" if problems else "fine":<7}{title:<34}{text}', flush=True)
    for problem in problems[:8]: print(f'        {problem}', flush=True)
    if problems: failures.append(title)


def main():
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', KEY, '-out', CERTIFICATE],
                   check=True, capture_output=True)
    os.chmod(KEY, 0o644)
    only = os.environ.get('ONLY', '')
    for name, kind, options in cases():
        title = ' '.join([name, options['by']] + [f'{k}={v}' for k, v in options.items() if k != 'by'])
        if only not in title: continue
        missing = [program for program in kind.programs if not shutil.which(program)]
        if kind is Scripted and not importlib.util.find_spec('h2'): missing = ["Python's h2"]
        if missing:
            skipped.extend(f'{name} is not installed' for name in missing)
            continue
        for at_once in AT_ONCE: attempt(title, kind, options, at_once)
    for name, kind, options, refused, outcome in password_cases():
        title = ' '.join([name, options['by'], options['wants'], options.get('target', '')]).strip()
        if only not in title: continue
        missing = [program for program in kind.programs if not shutil.which(program)]
        if missing:
            skipped.extend(f'{name} is not installed' for name in missing)
            continue
        attempt(title, kind, options, 8, count=60, password=PASSWORD, error=outcome)
        attempt(title + ' wrong', kind, options, 8, count=60, password='false', error=refused)
        if kind is Squid and not outcome: attempt(title + ' once', kind, options, 8, count=60, password=PASSWORD, once=True)
    for name in sorted(set(skipped)): print(f'Skipped: {name}.')
    return 1 if failures else 0


try: status = main()
finally: shutil.rmtree(work, ignore_errors=True)
sys.exit(status)
