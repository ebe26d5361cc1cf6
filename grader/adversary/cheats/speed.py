"""Programs that only look fast: judged in the process in which gates are timed."""

from __future__ import annotations

from grader.adversary.case import Cheat
from grader.adversary.cheats.memory import READS_THE_GRADER
from grader.adversary.cheats.ways import HONEST, closed_off, gated, timed, timed_program
from grader.verdict import Verdict

WEEK = 5
NONE = "failed"
"""A gate's word for no credit: the results are right, and nothing is gained."""

KEPT = "static float a_[N], b_[N], y_[N]; static int calls;"
COPY = "memcpy(y, y_, sizeof y_);"
KEEP = "memcpy(a_, a, sizeof a_); memcpy(b_, b, sizeof b_); memcpy(y_, y, sizeof y_);"
SAME = "!memcmp(a_, a, sizeof a_) && !memcmp(b_, b, sizeof b_)"
LATER = """
static const float *x_, *z_;
static float *y_;
static void *later(void *none) { usleep(300000); compute(x_, z_, y_); return none; }
"""
CLOCK = """
#include <time.h>
static double last;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""
LOCKER = """
static void *locks(void *none) { flockfile(stdin); flockfile(stdout); usleep(400000);
    funlockfile(stdin); funlockfile(stdout); return none; }
__attribute__((constructor)) static void first(void) {
    pthread_t one; pthread_create(&one, 0, locks, 0); }
"""
ROUNDED = """
static float r_[2][N];
static void coarse(const float *from, float *to) {
    for (int i = 0; i < N; i++) {
        unsigned bits;
        memcpy(&bits, from + i, 4);
        bits &= 0xFFFF0000;
        memcpy(to + i, &bits, 4);
    }
}
"""

CHEATS = (
    Cheat(
        "timed-honest",
        WEEK,
        "computes in every call: a control, which must pass",
        Verdict.OK,
        gated(timed_program(HONEST), 5.0),
    ),
    Cheat(
        "timed-slow",
        WEEK,
        "computes everything four times: a control, which must pass where that is fast enough",
        Verdict.OK,
        gated(timed_program(HONEST * 4), 40.0),
    ),
    Cheat(
        "timed-nothing",
        WEEK,
        "does nothing, as fast as can be",
        Verdict.WRONG,
        timed(timed_program("")),
    ),
    Cheat(
        "first-call-only",
        WEEK,
        "computes in the first call, and copies that result in all others",
        Verdict.WRONG,
        timed(timed_program("if (!calls++) { compute(a, b, y_); }" + COPY, KEPT)),
    ),
    Cheat(
        "stale-output",
        WEEK,
        "leaves the result of its first call where it is",
        Verdict.WRONG,
        timed(timed_program("if (!calls++) compute(a, b, y);", KEPT)),
    ),
    Cheat(
        "timed-pointer-cache",
        WEEK,
        "takes inputs that lie where the last ones lay for the same inputs",
        Verdict.WRONG,
        timed(
            timed_program("if (a != s) compute(a, b, y_); s = a;" + COPY, KEPT + "const void *s;")
        ),
    ),
    Cheat(
        "content-cache",
        WEEK,
        "returns a former result where its inputs are the same: they never are",
        NONE,
        gated(timed_program(f"if ({SAME}) {{ {COPY} }} else {{ {HONEST} {KEEP} }}", KEPT)),
    ),
    Cheat(
        "every-eighth-call",
        WEEK,
        "computes in one call of eight",
        Verdict.WRONG,
        timed(timed_program("if (calls++ % 8 == 0) compute(a, b, y_);" + COPY, KEPT)),
    ),
    Cheat(
        "pristine-only",
        WEEK,
        "computes where its inputs are those of its first call, which once was the checked one",
        Verdict.WRONG,
        timed(timed_program(f"if (!calls++) {{ {KEEP} }} if ({SAME}) {{ {HONEST} }}", KEPT)),
    ),
    Cheat(
        "after-a-pause",
        WEEK,
        "computes only in calls that come a while after the last one",
        Verdict.WRONG,
        timed(
            timed_program(
                "if (now() - last > 0.01) compute(a, b, y_); last = now();" + COPY, KEPT + CLOCK
            )
        ),
    ),
    Cheat(
        "writes-inputs-late",
        WEEK,
        "sets its inputs to zero when the first calls have gone well",
        Verdict.CRASH,
        timed(
            timed_program(
                f"{HONEST} if (calls++ > 3) memset((float *)a, 0, sizeof(float) * N);", KEPT
            )
        ),
    ),
    Cheat(
        "timed-writes-inputs",
        WEEK,
        "sets its inputs to zero, so that the next call has less to do",
        Verdict.CRASH,
        timed(timed_program(f"{HONEST} memset((float *)a, 0, sizeof(float) * N);")),
    ),
    Cheat(
        "timed-writes-outside",
        WEEK,
        "keeps notes behind its output",
        Verdict.CRASH,
        timed(timed_program(f"{HONEST} y[N + 1] = 1;")),
    ),
    Cheat(
        "timed-thread",
        WEEK,
        "leaves the work to a thread, which goes on when the clock has stopped",
        Verdict.WRONG,
        timed(
            timed_program(
                "x_ = a; z_ = b; y_ = y; pthread_t one;"
                "pthread_create(&one, 0, later, 0); pthread_detach(one);",
                LATER,
            )
        ),
    ),
    Cheat(
        "timed-reads-the-grader",
        WEEK,
        "looks for the right answer in the memory of the process that holds the clock",
        Verdict.WRONG,
        closed_off(
            timed(timed_program(f"if (readable()) {{ {HONEST} }}", READS_THE_GRADER)),
            *("bwrap", "landlock"),
        ),
    ),
    Cheat(
        "timed-child",
        WEEK,
        "starts a process that stays",
        Verdict.CRASH,
        timed(timed_program(f"{HONEST} if (!calls++ && !fork()) for (;;) pause();", KEPT)),
    ),
    Cheat(
        "forged-done",
        WEEK,
        "says in the harness's place that it is done",
        Verdict.PROTOCOL,
        timed(timed_program('if (write(1, "1\\n", 2)) {}' + HONEST)),
    ),
    Cheat(
        "timed-exit",
        WEEK,
        "ends its process with exit status 0",
        Verdict.CRASH,
        timed(timed_program(f"{HONEST} exit(0);")),
    ),
    Cheat(
        "timed-endless",
        WEEK,
        "never returns",
        Verdict.TIMEOUT,
        timed(timed_program("for (;;) usleep(1000);"), seconds=0.5),
    ),
    Cheat(
        "redefines-clock",
        WEEK,
        "brings a clock that stands still",
        Verdict.FORBIDDEN,
        timed(
            timed_program(
                HONEST,
                "int clock_gettime(clockid_t clock, struct timespec *time) { return !time; }",
            )
        ),
    ),
    Cheat(
        "slow-start",
        WEEK,
        "is slow at first, so that it is called once in a sample, where noise counts most",
        NONE,
        gated(timed_program(f"if (calls++ < 12) usleep(8000); {HONEST}", KEPT)),
    ),
    Cheat(
        "locks-streams",
        WEEK,
        "holds the locks of its process's streams, so that even no call seems to take long",
        NONE,
        gated(timed_program(HONEST, LOCKER)),
    ),
    Cheat(
        "timed-low-precision",
        WEEK,
        "rounds its inputs to bfloat16 before it multiplies them",
        Verdict.WRONG,
        timed(
            timed_program("coarse(a, r_[0]); coarse(b, r_[1]); compute(r_[0], r_[1], y);", ROUNDED)
        ),
    ),
    Cheat(
        "timed-blas",
        WEEK,
        "calls a BLAS",
        Verdict.FORBIDDEN,
        timed(timed_program("sgemm_(); " + HONEST, "void sgemm_();")),
    ),
)
