#!/usr/bin/env python3
"""The metrics server as strangers and enemies see it: server.py FAKE_MONITOR."""

import base64
import concurrent.futures
import http.client
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

from promtool import MISSING, promtool

FAKE = sys.argv.pop(1)
ACCOUNTS = "# who may read\nprometheus:%s\n"
FOLDER = tempfile.mkdtemp(prefix="rlscope-metrics-")
CERTIFICATE = os.path.join(FOLDER, "certificate.pem")  # its own authority
KEY = os.path.join(FOLDER, "key.pem")


def setUpModule():
    if shutil.which("openssl"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", KEY, "-out",
                        CERTIFICATE, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)


def tearDownModule():
    shutil.rmtree(FOLDER)


class Monitor:
    """A fake_monitor with its configuration."""

    def __init__(self, text=""):
        self.folder = tempfile.mkdtemp(prefix="rlscope-metrics-")
        self.config = os.path.join(self.folder, "monitor.conf")
        self.configure("listen 127.0.0.1:0\ninterval 0.1\n" + text)
        self.errors = open(os.path.join(self.folder, "stderr"), "w+")
        self.process = subprocess.Popen([FAKE, self.config], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = urllib.parse.urlsplit(self.url).port if self.url else None

    def path(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def configure(self, text):
        with open(self.config, "w") as file:
            file.write(text)

    def reload(self, text):
        """What it says of the reload."""
        self.configure(text)
        self.process.send_signal(signal.SIGHUP)
        return self.process.stdout.readline().strip()

    def said(self):
        self.errors.flush()
        with open(self.errors.name) as file:
            return file.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(timeout=600)
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.folder)
        return status

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=600)

    def ask(self, path="/metrics", method="GET", headers={}, context=None):
        """Status, headers, text."""
        if context:
            link = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=context)
        else:
            link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            link.request(method, path, headers=headers)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            link.close()

    def raw(self, data, wait=True, timeout=1):
        """What comes back until the server closes, or waits for more."""
        got = b""
        with self.connect() as link:
            link.settimeout(timeout)
            try:
                link.sendall(data)
                while wait:
                    part = link.recv(65536)
                    if not part:
                        break
                    got += part
            except (ConnectionError, socket.timeout):
                pass
        return got


def value(text, name):
    for line in text.splitlines():
        if line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise KeyError(name)


def login(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


openssl = unittest.skipUnless(shutil.which("openssl"), "no openssl here to make keys and hashes with")


class Server(unittest.TestCase):
    def monitor(self, text=""):
        monitor = Monitor(text)
        self.addCleanup(lambda: self.assertEqual(monitor.stop(), 0, "ends cleanly"))
        self.assertTrue(monitor.url, "started")
        return monitor

    def test_answers(self):
        monitor = self.monitor()
        status, headers, text = monitor.ask()
        self.assertEqual(status, 200)
        self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(int(headers["Content-Length"]), len(text.encode()))
        self.assertIn('rlscope_build_info{version="', text)
        self.assertEqual(monitor.ask("/metrics?name=x")[0], 200)
        self.assertEqual(monitor.ask("/healthz")[::2], (200, "ok\n"))
        for path in "/", "/metrics/", "/../metrics", "/healthz/x", "/" + "a" * 5000:
            self.assertEqual(monitor.ask(path)[0], 404, path)
        for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE":
            status, headers, _ = monitor.ask(method=method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        status, headers, text = monitor.ask(method="HEAD")
        self.assertEqual((status, text), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 1000)

    def test_figures_go_on_and_refusals_are_counted(self):
        monitor = self.monitor()
        before = monitor.ask()[2]
        monitor.ask("/nowhere")
        hits, pages, refused = ('rlscope_hits_total{job="walker"}', "rlscope_monitor_pages_served_total",
                                "rlscope_monitor_requests_refused_total")
        seen = [before]
        # The first page with new hits may be of before the refusal.
        self.until(lambda: seen.append(monitor.ask()[2]) or
                   (value(seen[-1], hits) > value(before, hits) and value(seen[-1], refused) > 0))
        after = seen[-1]
        self.assertLess(value(after, pages), len(seen), "its own page is not served yet")
        self.assertGreaterEqual(value(after, pages), 1)
        self.assertEqual(value(after, refused), 1)
        self.assertLess(abs(value(after, "rlscope_snapshot_timestamp_seconds") - time.time()), 30)

    def test_checked_by_promtool(self):
        if not promtool():
            self.skipTest(MISSING)
        text = self.monitor().ask()[2]
        check = subprocess.run([promtool(), "check", "metrics"], input=text, text=True,
                               capture_output=True)
        self.assertEqual((check.returncode, check.stdout, check.stderr), (0, "", ""))

    def test_junk(self):
        monitor = self.monitor()
        chance = random.Random(1)
        for i in range(300):
            monitor.raw(chance.randbytes(chance.randrange(1, 3000)) + b"\r\n\r\n", wait=i % 3 == 0)
        for junk in (b"\0" * 4096, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"\r\n" * 2000,
                     b"GET " + b"a" * 100000, b"GET /metrics HTTP/1.1\r\nA: " + b"b" * 100000,
                     b"GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                     b"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nx"):
            self.assertNotIn(b" 200 ", monitor.raw(junk).split(b"\r\n")[0], junk[:40])
        self.assertEqual(monitor.ask()[0], 200)

    def test_half_open_and_slow_clients(self):
        """They hold connections, and lose them; nobody else on the list is turned away for it
        longer than that, and figures go on."""
        monitor = self.monitor()
        before = value(monitor.ask()[2], 'rlscope_hits_total{job="walker"}')
        links = [monitor.connect() for _ in range(31)]
        for link in links:
            link.sendall(b"GET /metrics HTTP/1.1\r\n")
        self.assertEqual(monitor.ask()[0], 200)
        deadline = time.monotonic() + 200
        open_links = list(links)
        while open_links and time.monotonic() < deadline:
            for link in list(open_links):  # a byte now and then, so that they are never idle
                try:
                    link.settimeout(0.01)
                    link.sendall(b"X")
                    if link.recv(100) == b"":
                        open_links.remove(link)
                except socket.timeout:
                    pass
                except ConnectionError:
                    open_links.remove(link)
            time.sleep(0.3)
        for link in links:
            link.close()
        self.assertEqual(open_links, [], "all cut, though none was idle")
        self.assertGreater(value(monitor.ask()[2], 'rlscope_hits_total{job="walker"}'), before)

    def test_too_many_connections(self):
        monitor = self.monitor()
        links = [monitor.connect() for _ in range(300)]
        files = len(os.listdir(f"/proc/{monitor.process.pid}/fd"))
        self.assertLess(files, 60, "per address 32, and the process's own")
        for link in links:
            link.close()
        for _ in range(1000):
            try:
                status = monitor.ask()[0]
                break
            except (ConnectionError, http.client.HTTPException):
                time.sleep(0.1)
        self.assertEqual(status, 200)

    def test_no_scrape_waits_for_room_in_the_queue(self):
        """A connection that the kernel has no room for is asked for again after a second, or more."""
        monitor = self.monitor()
        monitor.process.send_signal(signal.SIGSTOP)
        links = []
        try:
            while len(links) < 300:
                links.append(socket.create_connection(("127.0.0.1", monitor.port), timeout=0.9))
        finally:
            monitor.process.send_signal(signal.SIGCONT)
            for link in links:
                link.close()
        self.until(lambda: monitor.raw(b"GET /metrics HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200"))

    def test_ten_thousand_requests(self):
        monitor = self.monitor()
        request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
        before = self.memory(monitor)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: monitor.raw(request, timeout=600)[:15], range(10000)))
        self.assertEqual(set(answers), {b"HTTP/1.1 200 OK"})
        self.until(lambda: value(monitor.ask()[2], "rlscope_monitor_pages_served_total") >= 10000)
        self.assertLess(self.memory(monitor) - before, 4 << 20, "memory stays")
        self.assertLess(len(os.listdir(f"/proc/{monitor.process.pid}/fd")), 20)

    @staticmethod
    def memory(monitor):
        with open(f"/proc/{monitor.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @staticmethod
    def accounts():
        path = os.path.join(FOLDER, "users")
        hashed = subprocess.run(["openssl", "passwd", "-6", "secret"], capture_output=True,
                                text=True, check=True).stdout.strip()
        with open(path, "w") as file:
            file.write(ACCOUNTS % hashed)
        return path

    @openssl
    def test_passwords(self):
        monitor = self.monitor(f"auth-file {self.accounts()}\n")
        status, headers, text = monitor.ask()
        self.assertEqual(status, 401)
        self.assertIn("Basic realm=", headers["WWW-Authenticate"])
        self.assertNotIn("rlscope_hits_total", text)
        self.assertEqual(monitor.ask("/healthz")[0], 200, "asks for no password")
        self.assertEqual(monitor.ask(headers=login("prometheus", "secret"))[0], 200)
        for user, password in (("prometheus", "Secret"), ("prometheus", ""), ("", "secret"),
                               ("root", "secret"), ("prometheus", "x" * 9000)):
            self.assertEqual(monitor.ask(headers=login(user, password))[0], 401, user)
        self.assertEqual(monitor.ask(headers={"Authorization": "Basic %%%"})[0], 401)
        self.assertEqual(monitor.ask(headers={"Authorization": "Bearer secret"})[0], 401)
        guesses = [monitor.ask(headers=login("prometheus", f"guess{i}"))[0] for i in range(40)]
        self.assertIn(429, guesses, "guessing is slowed")
        self.assertNotIn(200, guesses)
        self.assertEqual(monitor.ask(headers=login("prometheus", "secret"))[0], 200,
                         "who was right before is let in meanwhile")

    @openssl
    def test_tls(self):
        monitor = self.monitor(f"tls-cert {CERTIFICATE}\ntls-key {KEY}\n")
        self.assertTrue(monitor.url.startswith("https://"))
        context = ssl.create_default_context(cafile=CERTIFICATE)
        self.assertEqual(monitor.ask(context=context)[0], 200)
        self.assertNotIn(b" 200 ", monitor.raw(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))
        half = monitor.connect()
        self.assertEqual(monitor.ask(context=context)[0], 200)
        half.close()

    @openssl
    def test_reload(self):
        monitor = self.monitor()
        counters = monitor.ask()[2]
        settings = f"listen 127.0.0.1:{monitor.port}\ninterval 0.2\n"
        self.assertEqual(monitor.reload(settings + "tls-cert /nowhere\n"), "kept")
        self.assertIn("the key is missing", monitor.said())
        self.assertEqual(monitor.reload(settings + "nonsense 1\n"), "kept")
        self.assertIn("line 3: 'nonsense' is no setting", monitor.said())
        self.assertEqual(monitor.ask()[0], 200)
        files = len(os.listdir(f"/proc/{monitor.process.pid}/fd"))
        for _ in range(5):
            self.assertEqual(monitor.reload(settings), "reloaded")
            self.assertEqual(monitor.ask()[0], 200)
        self.assertLessEqual(len(os.listdir(f"/proc/{monitor.process.pid}/fd")), files + 2,
                             "none but a connection that is being closed")
        after = monitor.ask()[2]
        for name in ('rlscope_hits_total{job="walker"}', "rlscope_monitor_pages_served_total"):
            self.assertGreaterEqual(value(after, name), value(counters, name))
        self.assertEqual(monitor.reload(settings + f"tls-cert {CERTIFICATE}\ntls-key {KEY}\n"),
                         "reloaded")
        context = ssl.create_default_context(cafile=CERTIFICATE)
        self.assertEqual(monitor.ask(context=context)[0], 200)
        self.assertEqual(monitor.reload("listen none\n"), "reloaded")
        with self.assertRaises(ConnectionRefusedError):
            monitor.connect()

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as trial:
                trial.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        folder = tempfile.mkdtemp(dir=FOLDER)
        config = os.path.join(folder, "monitor.conf")
        with open(config, "w") as file:
            file.write("listen [::1]:0\n")
        with subprocess.Popen([FAKE, config], stdout=subprocess.PIPE, text=True) as process:
            url = process.stdout.readline().strip()
            self.assertTrue(url.startswith("http://[::1]:"))
            link = http.client.HTTPConnection("::1", urllib.parse.urlsplit(url).port, timeout=600)
            link.request("GET", "/metrics")
            self.assertEqual(link.getresponse().status, 200)
            link.close()
            process.terminate()

    @openssl
    def test_bad_beginnings(self):
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        self.addCleanup(taken.close)
        for text, sentence in (
                (f"listen 127.0.0.1:{port}\n", f"cannot listen on 127.0.0.1:{port}: Address already in use"),
                ("listen 203.0.113.9:1\n", "Cannot assign requested address"),
                ("listen metrics\n", "takes ADDRESS:PORT"),
                ("auth-file /nowhere\n", "cannot read /nowhere: No such file or directory"),
                (f"auth-file {CERTIFICATE}\n", "line 1: not USER:HASH"),
                ("auth-file /dev/zero\n", "it is not a file"),
                (f"tls-key {KEY}\n", "the certificate is missing"),
                (f"tls-cert {KEY}\ntls-key {CERTIFICATE}\n", "are they a certificate and its key"),
                ("interval 0\n", "takes seconds from 0.1 to 3600, not '0'")):
            config = os.path.join(FOLDER, "bad.conf")
            with open(config, "w") as file:
                file.write(text if "listen" in text else "listen 127.0.0.1:0\n" + text)
            run = subprocess.run([FAKE, config], capture_output=True, text=True, timeout=600)
            self.assertEqual(run.returncode, 1, text)
            self.assertIn(sentence, run.stderr)
            self.assertEqual(run.stdout, "")

    def test_textfile(self):
        folder = tempfile.mkdtemp(prefix="rlscope-metrics-")
        self.addCleanup(shutil.rmtree, folder, True)
        collector = os.path.join(folder, "collector")
        page = os.path.join(collector, "rlscope.prom")
        monitor = self.monitor(f"textfile {collector}\n")
        self.until(lambda: "cannot write" in monitor.said())
        time.sleep(0.5)
        self.assertEqual(monitor.said().count("cannot write"), 1, "said once")
        self.assertEqual(monitor.said().count("No such file or directory"), 1)
        os.mkdir(collector)
        self.until(lambda: os.path.exists(page))
        self.assertEqual(os.stat(page).st_mode & 0o777, 0o644)
        self.assertEqual(os.listdir(collector), ["rlscope.prom"])
        for _ in range(200):  # never half a page
            with open(page) as file:
                text = file.read()
            self.assertTrue(text.endswith("\n"))
            self.assertIn("rlscope_monitor_textfile_failures_total", text)
        self.assertGreaterEqual(value(text, "rlscope_monitor_textfile_failures_total"), 1)
        self.assertIn("is written again", monitor.said())
        monitor.process.terminate()
        monitor.process.wait(timeout=600)
        self.assertEqual(os.listdir(collector), [], "old figures do not stay behind")

    def until(self, what):
        deadline = time.monotonic() + 600
        while not what() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(what())


if __name__ == "__main__":
    unittest.main()
