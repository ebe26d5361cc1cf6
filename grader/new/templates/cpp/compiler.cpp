// `compiler VERB [options]` reads a program from standard input. Its answer goes to standard
// output with exit status 0; faults of the program go to standard error with exit status 1, each as
// FILE:LINE:COL: CODE message.

#include <iostream>
#include <iterator>
#include <string>

int main(int count, char **words) {
  const std::string verb = count > 1 ? words[1] : "";
  if (verb != "simplify" && verb != "compile") {
    std::cerr << "expected one of the verbs simplify, compile, got \"" << verb << "\"\n";
    return 1;
  }
  const std::string program{std::istreambuf_iterator<char>(std::cin), {}};
  std::cerr << "<stdin>:1:1: E000 " << verb << " of these " << program.size()
            << " bytes is not implemented\n";
  return 1;
}
