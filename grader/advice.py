"""What a student can do about each verdict."""

from __future__ import annotations

from collections.abc import Mapping

from grader.verdict import Verdict

ADVICE: Mapping[Verdict, str] = {
    Verdict.WRONG: (
        "Evaluate the small program by hand at the index that is shown, then look for the rule or "
        "pass that changes it: print the program before and after each."
    ),
    Verdict.BOUND: (
        "The result is right and can be simpler: compare what you printed with what the test "
        "asks for, and find the rule that did not fire."
    ),
    Verdict.ACCEPTED: (
        "Your reader lacks a check: the test names the code and the line of the diagnostic that "
        "was due, syllabus/spec.md the rule behind it."
    ),
    Verdict.COMPILE_ERROR: (
        "Save what you emitted and run the C compiler on it; its first message stands under "
        "standard error."
    ),
    Verdict.FORBIDDEN: (
        "What you emit computes by itself, with C's library and OpenMP: leave out the call that "
        "is named. syllabus/grading.md lists what is not allowed."
    ),
    Verdict.CRASH: (
        "Run the command in a debugger or with sanitizers. A signal names the kind of fault; an "
        "exit status other than 0 and 1 is a crash too."
    ),
    Verdict.TIMEOUT: (
        "Run the command and see whether it ends at all: rules that undo each other never settle, "
        "and a pass that walks a shared graph as a tree takes exponential time."
    ),
    Verdict.MEMORY: (
        "Look for graphs that are copied where they could be shared, and for loops that are "
        "unrolled without a bound."
    ),
    Verdict.OUTPUT: (
        "Something prints without end, or a value that is used twice is printed twice: name it "
        "once and use the name."
    ),
    Verdict.PROTOCOL: (
        "Standard output holds the result and nothing else: print what you need for debugging on "
        "standard error, and compare the text with syllabus/spec.md."
    ),
    Verdict.REFUSED: (
        "The program is right. Your own diagnostic, under standard error, says what your reader "
        "takes it for."
    ),
    Verdict.UNSUPPORTED: "Your compiler does not know this verb yet; the week's page defines it.",
    Verdict.GRADER: (
        "This is not your fault, and its points stay open: give the ID to the course staff."
    ),
}
