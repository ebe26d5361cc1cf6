// `Compiler VERB [options]` reads a program from standard input. Its answer goes to standard
// output with exit status 0; faults of the program go to standard error with exit status 1, each as
// FILE:LINE:COL: CODE message.

import java.io.IOException;

final class Compiler {
  public static void main(String[] words) throws IOException {
    String verb = words.length > 0 ? words[0] : "";
    if (!verb.equals("simplify") && !verb.equals("compile")) {
      System.err.println("expected one of the verbs simplify, compile, got \"" + verb + "\"");
      System.exit(1);
    }
    byte[] program = System.in.readAllBytes();
    System.err.println(
        "<stdin>:1:1: E000 " + verb + " of these " + program.length + " bytes is not implemented");
    System.exit(1);
  }
}
