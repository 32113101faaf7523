// SPDX-License-Identifier: GPL-2.0-only
// Launch scripts: variables, arrays, arithmetic, conditions, and skipped commands.
#include "workloads/shell/shell_script.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::shell_script_test {
namespace {

ShellScript script_of(const std::string& text) {
  return read_shell_script(text, "run.sh", [](const std::string& name) -> std::optional<std::string> {
    return name == "OUTSIDE" ? std::optional<std::string>("from outside") : std::nullopt;
  });
}

/// The words of the last command.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  const ShellScript script = script_of(text);
  if (script.commands.empty()) return words;
  for (const ShellText& word : script.commands.back()) words.push_back(word.text());
  return words;
}
using Words = std::vector<std::string>;

TEST(ShellScript, WordsAndQuotes) {
  EXPECT_EQ(words_of("run a 'b c' \"d e\" f\\ g h#i # j"), (Words{"run", "a", "b c", "d e", "f g", "h#i"}));
  EXPECT_EQ(words_of("run a \\\n  b \\\n c"), (Words{"run", "a", "b", "c"}));
  EXPECT_EQ(words_of("run 'a\\b' \"a\\b\\\"c\" ''"), (Words{"run", "a\\b", "a\\b\"c", ""}));
  const ShellScript several = script_of("first; second && third | fourth x > file");
  ASSERT_EQ(several.commands.size(), 4U);
  EXPECT_EQ(several.commands.back().size(), 2U);  // without the redirection
}

TEST(ShellScript, Variables) {
  EXPECT_EQ(words_of("A=2\nB=\"x $A\"\nrun $A ${A}3 \"$B\" $B"), (Words{"run", "2", "23", "x 2", "x", "2"}));
  EXPECT_EQ(words_of("export A=1 B=2\nrun $A$B"), (Words{"run", "12"}));
  EXPECT_EQ(words_of("A=1\nA+=2\nrun $A"), (Words{"run", "12"}));
  EXPECT_EQ(words_of("run ${A:-1} ${A:-\"2 3\"} ${OUTSIDE}"), (Words{"run", "1", "2 3", "from", "outside"}));
  EXPECT_EQ(words_of(": ${A:=5}\nrun $A"), (Words{"run", "5"}));
  EXPECT_EQ(words_of("A=\nrun ${A:-1} ${A-1}x"), (Words{"run", "1", "x"}));
  EXPECT_EQ(words_of("A=1; B=${A:+yes}; run $B"), (Words{"run", "yes"}));
}

TEST(ShellScript, WhatNothingSetsIsAGap) {
  const ShellScript script = script_of("run $NOTHING `date` $(hostname -s) ${A##*/} $1");
  ASSERT_EQ(script.commands.back().size(), 6U);
  EXPECT_EQ(script.commands.back()[1].gap(), "$NOTHING");
  EXPECT_EQ(script.commands.back()[2].gap(), "`date`");
  EXPECT_EQ(script.commands.back()[3].gap(), "$(hostname_-s)");
  EXPECT_EQ(script.commands.back()[4].gap(), "${A##*/}");
  EXPECT_EQ(script.commands.back()[5].gap(), "$1");
}

TEST(ShellScript, Arrays) {
  const std::string text = R"(A=(
  --one 1   # a comment \
  # --two 2
  --three "3 4"
)
A+=(--five)
run ${A[@]} x
run "${A[@]}" y)";
  EXPECT_EQ(words_of(text), (Words{"run", "--one", "1", "--three", "3 4", "--five", "y"}));
  EXPECT_EQ(script_of(text).commands.front().size(), 8U);  // unquoted, "3 4" falls apart
}

TEST(ShellScript, LinesOfWords) {
  const ShellScript script =
      script_of("A=(\n --one\n --two 2\n)\nB=\" \\\n --three \\\n --four\"\nrun ${A[@]} $B \\\n z");
  std::vector<int> lines;
  for (const ShellText& word : script.commands.back()) lines.push_back(word.line());
  EXPECT_EQ(lines, (std::vector<int>{8, 2, 3, 3, 6, 7, 9}));
}

TEST(ShellScript, Arithmetic) {
  EXPECT_EQ(words_of("A=8\nB=$((A*4))\nrun $B $(( $A * ($B + 1) / 2 )) $((7 % 4 - 5)) $((-A))"),
            (Words{"run", "32", "132", "-2", "-8"}));
  for (const char* bad : {"$((A*4))", "$((1/0))", "$((9223372036854775807+1))", "$((1 <<  2))", "$((1", "$(( ))"})
    EXPECT_FALSE(script_of(std::string("run ") + bad + " ").commands.back()[1].gap().empty()) << bad;
}

TEST(ShellScript, Conditions) {
  const auto taken = [](const std::string& test) {
    const Words words = words_of("A=7\nif " + test + "; then\n B=yes\nelse\n B=no\nfi\nrun ${B:-neither}");
    return words.at(1);
  };
  EXPECT_EQ(taken("[ $A -eq 7 ]"), "yes");
  EXPECT_EQ(taken("[[ $A == 8 ]]"), "no");
  EXPECT_EQ(taken("[ ! $A -lt 7 ]"), "yes");
  EXPECT_EQ(taken("[ -n \"${UNSET}\" ]"), "no");
  EXPECT_EQ(taken("[ -z $UNSET ]"), "yes");
  EXPECT_EQ(taken("[ \"$A\" != x ]"), "yes");
  EXPECT_EQ(taken("[ -f file ]"), "neither");
  EXPECT_EQ(taken("[ $A = 7 ] && [ $A = 8 ]"), "neither");
  EXPECT_EQ(words_of("A=2\nif [ $A = 1 ]; then B=one\nelif [ $A = 2 ]; then B=two\nelse B=more\nfi\nrun $B"),
            (Words{"run", "two"}));
}

TEST(ShellScript, WhatIsPassedOver) {
  const ShellScript script = script_of(R"(A=1
for i in 1 2; do A=$i; done
while true; do
  A=3
done
case $A in x) A=4;; *) A=5;; esac
f() {
  A=6
}
if [ -f x ]; then A=7; fi
cat > file <<EOF
A=8
EOF
run $A)");
  ASSERT_FALSE(script.commands.empty());
  EXPECT_EQ(script.commands.back().back().text(), "1");
  EXPECT_EQ(script.passed_over,
            (Words{"for (line 2)", "while (line 3)", "case (line 6)", "function (line 7)", "if (line 10)"}));
}

TEST(ShellScript, Complaints) {
  EXPECT_NE(complaint([] { script_of("\nA=(1 2\n"); }).find("run.sh:2: the array A has no end"), std::string::npos);
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  EXPECT_NE(complaint([&] { script_of(doubling); }).find("expand to more than 8 MiB"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "if [ a = a ]; then\n";
  EXPECT_NE(complaint([&] { script_of(deep); }).find("run.sh:257: more than 256 open blocks"), std::string::npos);
}

}  // namespace
}  // namespace weft::test::shell_script_test
