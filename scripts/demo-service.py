#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service in Python that scripts/demo profiles: it prices orders that it gets by HTTP, and asks
itself for so many seconds. usage: demo-service.py SECONDS
"""
import http.server
import json
import sys
import threading
import time
import urllib.request

RATES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "CHF": 1.05}


def parse_order(line):
    """"12 USD 4.25" is twelve pieces of 4.25 dollars each."""
    amount, currency, price = line.split()
    return int(amount), currency, float(price)


def discount(amount):
    """A tenth for each power of three: the slow one, on purpose."""
    rest, share = amount * 997, 0.0
    while rest > 1:
        share += 0.001 if rest % 3 == 0 else 0.0
        rest = rest // 3 if rest % 3 == 0 else rest - 1
    return min(share, 0.5)


def price_orders(text):
    total = 0.0
    for line in text.splitlines():
        amount, currency, price = parse_order(line)
        total += amount * price * RATES[currency] * (1 - discount(amount))
    return round(total, 2)


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        total = price_orders(self.rfile.read(int(self.headers["Content-Length"])).decode())
        answer = json.dumps({"total": total}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    end = time.monotonic() + float(sys.argv[1])
    orders = "\n".join("%d %s %d.25" % (i * 37 % 5000 + 1, list(RATES)[i % 4], i % 90) for i in range(400)).encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    nr = 0
    while time.monotonic() < end:
        with urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port, orders) as answer:
            json.load(answer)
        nr += 1
    print("%d requests" % nr)


main()
