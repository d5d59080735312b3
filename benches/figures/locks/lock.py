"""redis-py's Lock: for each line with a number so many cycles of acquire and release, whose microseconds are told in a line."""
import sys
import time

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
print("ready", redis.__version__, flush=True)
for line in sys.stdin:
    spans = []
    for _ in range(int(line)):
        begun = time.perf_counter_ns()
        lock = client.lock("redis-py", timeout=30)
        assert lock.acquire()
        lock.release()
        spans.append((time.perf_counter_ns() - begun) // 1000)
    print(*spans, flush=True)
