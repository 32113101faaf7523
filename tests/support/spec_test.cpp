// SPDX-License-Identifier: GPL-2.0-only
// Tests of typed access to an experiment file, and of every complaint about one.
#include "support/documents/spec.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::spec_test {
namespace {

const std::string experiment =
    "# a comment\n"                       // 1
    "topology: {kind: fat_tree, k: 4,\n"  // 2
    "           link_rate: 400 Gb/s}\n"   // 3
    "network:\n"                          // 4
    "  mtu: 4096 B\n"                     // 5
    "  delay:\n"                          // 6
    "    500 ns\n"                        // 7
    "  ratio: 0.25\n"                     // 8
    "  lossy: no\n"                       // 9
    "  nothing:\n"                        // 10
    "workload:\n"                         // 11
    "  pairs:\n"                          // 12
    "    - [0, 5]\n"                      // 13
    "    - [1, 6]\n"                      // 14
    "  name: \"12\"\n";                   // 15

Spec read(const std::string& text = experiment) { return Spec::parse(text, "x.yaml"); }

/// The complaint of `work`; fails the test if there is none.
std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no InputError";
  return "";
}

// Reading -------------------------------------------------------------------------------------------------------------

TEST(Spec, TypedValues) {
  const Spec spec = read();
  EXPECT_EQ(spec.at("topology").at("kind").text(), "fat_tree");
  EXPECT_EQ(spec.at("topology").at("k").integer(), 4);
  EXPECT_EQ(spec.at("topology").at("link_rate").bandwidth(), Bandwidth::from_gbps(400));
  const Spec network = spec.at("network");
  EXPECT_EQ(network.at("mtu").bytes(), Bytes(4096));
  EXPECT_EQ(network.at("delay").time(), Time::from_ns(500));
  EXPECT_DOUBLE_EQ(network.at("ratio").number(), 0.25);
  EXPECT_FALSE(network.at("lossy").boolean());
  EXPECT_TRUE(network.at("nothing").is_null());
  const Spec workload = spec.at("workload");
  EXPECT_EQ(workload.at("pairs").size(), 2U);
  EXPECT_EQ(workload.at("pairs")[1][0].integer(), 1);
  EXPECT_EQ(workload.at("pairs").items()[0].items()[1].integer(), 5);
  EXPECT_EQ(workload.at("name").text(), "12");
}

TEST(Spec, Kinds) {
  const Spec spec = read();
  EXPECT_TRUE(spec.is_map() && spec.at("topology").is_map());
  EXPECT_TRUE(spec.at("workload").at("pairs").is_sequence());
  EXPECT_TRUE(spec.at("topology").at("k").is_scalar());
  EXPECT_FALSE(spec.at("topology").at("k").is_null() || spec.at("topology").at("k").is_map());
}

TEST(Spec, PlacesAndPaths) {
  const Spec spec = read();
  const auto place = [](const Spec& value) { return value.where().text() + " " + value.path(); };
  EXPECT_EQ(place(spec.at("topology")), "x.yaml:2 topology");
  EXPECT_EQ(place(spec.at("topology").at("link_rate")), "x.yaml:3 topology.link_rate");
  EXPECT_EQ(place(spec.at("network")), "x.yaml:4 network");
  EXPECT_EQ(place(spec.at("network").at("delay")), "x.yaml:7 network.delay");
  EXPECT_EQ(place(spec.at("network").at("nothing")), "x.yaml:10 network.nothing");
  EXPECT_EQ(place(spec.at("workload").at("pairs")), "x.yaml:12 workload.pairs");
  EXPECT_EQ(place(spec.at("workload").at("pairs")[1]), "x.yaml:14 workload.pairs.1");
  EXPECT_EQ(place(spec.at("workload").at("pairs")[1][0]), "x.yaml:14 workload.pairs.1.0");
  EXPECT_EQ(spec.path(), "");
}

TEST(Spec, EntriesAreInFileOrder) {
  const Spec spec = read("{zebra: 1, ant: 2, cow: 3}");
  std::string keys;
  std::int64_t sum = 0;
  for (const auto& [key, value] : spec.entries()) {
    keys += key + " ";
    sum += value.integer();
  }
  EXPECT_EQ(keys, "zebra ant cow ");
  EXPECT_EQ(sum, 1 + 2 + 3);
  EXPECT_NO_THROW(spec.finish());
}

TEST(Spec, AbsentKeys) {
  const Spec spec = read();
  EXPECT_FALSE(spec.find("output").has_value());
  EXPECT_FALSE(spec.has("output"));
  EXPECT_TRUE(spec.has("network"));
}

TEST(Spec, AHandleKeepsTheDocumentAlive) {
  const Spec kind = [] { return read().at("topology").at("kind"); }();
  EXPECT_EQ(kind.text(), "fat_tree");
  EXPECT_EQ(kind.where().text(), "x.yaml:2");
  EXPECT_EQ(kind.verbatim(), experiment);
}

TEST(Spec, Numbers) {
  const Spec spec = read("{a: -7, b: +7, c: 1e3, d: 9223372036854775807, e: -9223372036854775808, f: .5, g: +2.5}");
  EXPECT_EQ(spec.at("a").integer(), -7);
  EXPECT_EQ(spec.at("b").integer(), 7);
  EXPECT_DOUBLE_EQ(spec.at("c").number(), 1e3);
  EXPECT_EQ(spec.at("d").integer(), INT64_MAX);
  EXPECT_EQ(spec.at("e").integer(), INT64_MIN);
  EXPECT_DOUBLE_EQ(spec.at("f").number(), 0.5);
  EXPECT_DOUBLE_EQ(spec.at("g").number(), 2.5);
  EXPECT_DOUBLE_EQ(spec.at("a").number(), -7);
  EXPECT_EQ(spec.at("a").integer(-7, -7), -7);  // both limits belong to the range
}

TEST(Spec, AnOptionOfTheCommandLine) {
  EXPECT_EQ(Spec::of_option("--size", "64 KiB").bytes(), Bytes(65536));
  EXPECT_EQ(complaint([] { Spec::of_option("--ranks", "x").integer(1); }),
            "--ranks: expected a whole number of at least 1, found 'x'");
  EXPECT_EQ(complaint([] { Spec::of_option("--ranks", "").integer(1); }),
            "--ranks: expected a whole number of at least 1, found nothing");
  EXPECT_TRUE(complaint([] { Spec::of_option("--ranks", "{a"); }).starts_with("--ranks: not valid YAML: "));
}

TEST(Spec, AliasesAndMergeKeys) {
  const Spec spec = read(
      "base: &base {rate: 1 Gb/s, delay: 5 ns}\n"  // 1
      "same: *base\n"                              // 2
      "list: [&one 1, *one]\n"                     // 3
      "fast:\n"                                    // 4
      "  <<: *base\n"                              // 5
      "  rate: 2 Gb/s\n"                           // 6
      "many:\n"                                    // 7
      "  <<: [{a: 1}, {a: 2, b: 3}]\n");           // 8
  EXPECT_EQ(spec.at("same").at("rate").bandwidth(), Bandwidth::from_gbps(1));
  EXPECT_EQ(spec.at("same").where().line, 2);
  EXPECT_EQ(spec.at("same").at("rate").path(), "same.rate");
  EXPECT_EQ(spec.at("list")[1].integer(), 1);
  EXPECT_EQ(spec.at("fast").at("rate").bandwidth(), Bandwidth::from_gbps(2));
  EXPECT_EQ(spec.at("fast").at("delay").time(), Time::from_ns(5));
  EXPECT_EQ(spec.at("fast").at("delay").path(), "fast.delay");
  EXPECT_NO_THROW(spec.at("fast").finish());
  EXPECT_EQ(spec.at("many").at("a").integer(), 1);
  EXPECT_EQ(spec.at("many").at("b").integer(), 3);
  // Copies remember their own keys.
  EXPECT_THROW(spec.at("base").finish(), InputError);
}

// Files that are no good YAML -----------------------------------------------------------------------------------------

TEST(SpecFile, LoadsAFile) {
  const auto path = std::filesystem::temp_directory_path() / ("weft_spec_test_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path) << experiment;
  const Spec spec = Spec::load(path.string());
  EXPECT_EQ(spec.verbatim(), experiment);
  EXPECT_EQ(spec.at("topology").where().text(), path.string() + ":2");
  const std::string missing = path.string() + "l";
  EXPECT_EQ(complaint([&] { Spec::load(missing); }), missing +
                                                         ": cannot open this file: No such file or directory (did you "
                                                         "mean '" +
                                                         path.filename().string() + "'?)");
  std::filesystem::remove(path);
}

TEST(SpecFile, ResultsAreNoExperiment) {
  const auto path = std::filesystem::temp_directory_path() / ("weft_spec_test_" + std::to_string(getpid()) + ".h5");
  std::ofstream(path) << "\x89HDF\r\n\x1a\n and more";
  EXPECT_EQ(complaint([&] { Spec::load(path.string()); }),
            path.string() + ": this is an HDF5 file, such as `weft run` writes for its results; expected YAML");
  std::filesystem::remove(path);
}

TEST(SpecFile, CannotBeOpened) {
  EXPECT_EQ(complaint([] { Spec::load("/no/such/file.yaml"); }),
            "/no/such/file.yaml: cannot open this file: No such file or directory, nor a folder '/no/such'");
  EXPECT_TRUE(complaint([] { Spec::load("/no/such/quickstart"); }).ends_with("workloads/quickstart.yaml')"));
  EXPECT_EQ(complaint([] { Spec::load("/"); }), "/: cannot open this file: it is a folder");
}

TEST(SpecFile, Empty) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "~"}) {
    EXPECT_NE(complaint([&] { read(text); }).find("x.yaml: this file is empty"), std::string::npos) << text;
  }
}

TEST(SpecFile, SyntaxErrorHasItsLine) {
  const std::string unclosed = complaint([] { read("a: 1\nb: [1, 2\nc: 3\n"); });
  EXPECT_EQ(unclosed.rfind("x.yaml:", 0), 0U) << unclosed;
  EXPECT_NE(unclosed.find("not valid YAML: "), std::string::npos) << unclosed;
  EXPECT_EQ(complaint([] { read("a:\n\tb: 1\n"); }),
            "x.yaml:2: not valid YAML: illegal map value (YAML indents by spaces, and this line by a tab)");
  EXPECT_EQ(complaint([] { read("a: 1\nb: @x\n"); }).substr(0, 25), "x.yaml:2: not valid YAML:");
  EXPECT_EQ(complaint([] { read("a: 1\nb: *nobody\n"); }).substr(0, 25), "x.yaml:2: not valid YAML:");
}

TEST(SpecFile, DuplicateKey) {
  EXPECT_EQ(complaint([] { read("a: 1\nb: 2\na: 3\n"); }),
            "x.yaml:3: the key 'a' is here twice; it came first in line 1");
  EXPECT_EQ(complaint([] { read("top:\n  in:\n    k: 1\n    k: 1\n"); }),
            "x.yaml:4: the key 'k' is here twice in 'top.in'; it came first in line 3");
}

TEST(SpecFile, KeysThatAreNoWords) {
  for (const char* text : {"{a: 1}: 2", "[a]: 2", "~: 2", "? \n: 2"}) {
    EXPECT_NE(complaint([&] { read(text); }).find("every key must be a word"), std::string::npos) << text;
  }
  EXPECT_NE(complaint([] { read("a: &x 1\n*x : 2\n"); }).find("every key must be a word"), std::string::npos);
}

TEST(SpecFile, AliasOfItself) {
  EXPECT_EQ(complaint([] { read("a: 1\nb: &b [1, *b]\n"); }),
            "x.yaml:2: this alias repeats a key, or the value that it is part of");
}

TEST(SpecFile, AliasesThatExplode) {
  // Ten levels of ten aliases each would be 10^10 values.
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 10; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int i = 0; i < 10; ++i) text += below + " , ";
    text += "x]\n";
  }
  EXPECT_NE(complaint([&] { read(text); }).find("the aliases expand to far too many values"), std::string::npos);
}

TEST(SpecFile, BadMerge) {
  EXPECT_EQ(complaint([] { read("a:\n  <<: 5\n"); }), "x.yaml:2: '<<' takes a map or a list of maps");
}

TEST(SpecFile, SecondDocument) {
  EXPECT_NE(complaint([] { read("a: 1\n---\nb: 2\n"); }).find("a second YAML document starts here"), std::string::npos);
}

// Keys ----------------------------------------------------------------------------------------------------------------

TEST(SpecKeys, Missing) {
  const Spec spec = read();
  EXPECT_EQ(complaint([&] { spec.at("output"); }),
            "x.yaml:2: missing key 'output'; found here: topology, network, workload");
  EXPECT_EQ(complaint([&] { spec.at("network").at("switch_latency"); }),
            "x.yaml:4: `network`: missing key 'switch_latency'; found here: mtu, delay, ratio, lossy, nothing");
  EXPECT_EQ(complaint([] { read("a: {}").at("a").at("b"); }), "x.yaml:1: `a`: missing key 'b'; found here: nothing");
}

TEST(SpecKeys, MissingBecauseMisspelt) {
  EXPECT_EQ(complaint([] { read("topology:\n  k: 4\n  link_rat: 1\n").at("topology").at("link_rate"); }),
            "x.yaml:3: `topology`: missing key 'link_rate', found 'link_rat' (did you mean 'link_rate'?)");
}

TEST(SpecKeys, Unknown) {
  const Spec topology = read("topology:\n  k: 4\n  link_rat: 1\n").at("topology");
  topology.at("k");
  topology.find("link_rate");
  EXPECT_EQ(complaint([&] { topology.finish(); }),
            "x.yaml:3: unknown key 'link_rat' in 'topology' (did you mean 'link_rate'?); known here: k, link_rate");
}

TEST(SpecKeys, UnknownHereAndKnownElsewhere) {
  const Spec spec = read("topology: {hosts: 4}\nworkload:\n  schedule: gpipe\n  parallelism: {pipeline: 2}\n");
  const Spec workload = spec.at("workload");
  workload.at("parallelism").find("schedule");
  EXPECT_EQ(complaint([&] { workload.finish(); }),
            "x.yaml:3: unknown key 'schedule' in 'workload' (it is a key of 'workload.parallelism'); known here: "
            "parallelism");
}

TEST(SpecKeys, UnknownAtTheTop) {
  const Spec spec = read("a: 1\nzzzzz: 2\n");
  spec.at("a");
  EXPECT_EQ(complaint([&] { spec.finish(); }), "x.yaml:2: unknown key 'zzzzz'; known here: a");
}

TEST(SpecKeys, TheMapRemembersThroughCopies) {
  const Spec spec = read("m: {a: 1, b: 2}");
  spec.at("m").at("a");
  const Spec copy = spec;
  copy.at("m").find("b");
  EXPECT_NO_THROW(spec.at("m").finish());
}

TEST(SpecKeys, OfNoMap) {
  const Spec spec = read();
  EXPECT_EQ(complaint([&] { spec.at("network").at("mtu").at("x"); }),
            "x.yaml:5: `network.mtu`: expected a map with the key 'x', found '4096 B'");
  EXPECT_EQ(
      complaint([&] { spec.at("network").at("nothing").find("x"); }),
      "x.yaml:10: `network.nothing`: expected a map, found nothing; leave the key out if nothing is set below it");
  EXPECT_EQ(complaint([&] { spec.at("network").at("nothing").at("x"); }),
            "x.yaml:10: `network.nothing`: expected a map with the key 'x', found nothing");
  EXPECT_EQ(complaint([&] { spec.at("workload").at("pairs").entries(); }),
            "x.yaml:12: `workload.pairs`: expected a map, found a list");
  EXPECT_EQ(complaint([&] { spec.at("workload").at("pairs").finish(); }),
            "x.yaml:12: `workload.pairs`: expected a map, found a list");
}

TEST(SpecKeys, LongTextsAreCutInMessages) {
  // After 60 bytes, and not within the two of a character.
  const std::string text(59, 'a');
  EXPECT_EQ(complaint([&] { Spec::parse(text + "\u00e4a", "x.yaml").at("key"); }),
            "x.yaml:1: expected a map with the key 'key', found '" + text + "...'");
}

// Types ---------------------------------------------------------------------------------------------------------------

TEST(SpecTypes, Sequences) {
  const Spec spec = read();
  EXPECT_EQ(complaint([&] { spec.at("topology").items(); }), "x.yaml:2: `topology`: expected a list, found a map");
  EXPECT_EQ(complaint([&] { spec.at("topology")[0]; }), "x.yaml:2: `topology`: expected a list, found a map");
  EXPECT_EQ(complaint([&] { spec.at("workload").at("pairs")[2]; }),
            "x.yaml:12: `workload.pairs`: expected a list of at least 3 items, found 2");
  EXPECT_EQ(complaint([&] { spec.at("network").at("mtu").size(); }),
            "x.yaml:5: `network.mtu`: expected a list or a map, found '4096 B'");
}

TEST(SpecTypes, Scalars) {
  const Spec spec = read("{word: fat, number: 5, map: {}, list: [], none: }");
  EXPECT_EQ(complaint([&] { spec.at("map").text(); }), "x.yaml:1: `map`: expected a text, found a map");
  EXPECT_EQ(complaint([&] { spec.at("none").text(); }), "x.yaml:1: `none`: expected a text, found nothing");
  EXPECT_EQ(complaint([&] { spec.at("word").boolean(); }), "x.yaml:1: `word`: expected true or false, found 'fat'");
  EXPECT_EQ(complaint([&] { spec.at("list").boolean(); }), "x.yaml:1: `list`: expected true or false, found a list");
  EXPECT_EQ(complaint([&] { spec.at("word").integer(); }), "x.yaml:1: `word`: expected a whole number, found 'fat'");
  EXPECT_EQ(complaint([&] { spec.at("map").integer(); }), "x.yaml:1: `map`: expected a whole number, found a map");
  EXPECT_EQ(complaint([&] { spec.at("word").number(); }), "x.yaml:1: `word`: expected a number, found 'fat'");
  EXPECT_EQ(complaint([&] { spec.at("list").number(); }), "x.yaml:1: `list`: expected a number, found a list");
}

TEST(SpecTypes, NumbersThatAreNone) {
  for (const char* text : {"4.0", "4 x", "0x10", "1e3", "+-4", "--4", "9223372036854775808", ""}) {
    EXPECT_THROW(read(std::string("a: \"") + text + "\"").at("a").integer(), InputError) << text;
  }
  for (const char* text : {"inf", "nan", ".inf", "1e999", "1.5x", "+-1", ""}) {
    EXPECT_THROW(read(std::string("a: \"") + text + "\"").at("a").number(), InputError) << text;
  }
}

TEST(SpecTypes, Ranges) {
  const Spec k = read("k: 17").at("k");
  EXPECT_EQ(complaint([&] { k.integer(1, 16); }), "x.yaml:1: `k`: expected a whole number from 1 to 16, found '17'");
  EXPECT_EQ(complaint([&] { k.integer(18); }), "x.yaml:1: `k`: expected a whole number of at least 18, found '17'");
  EXPECT_EQ(complaint([&] { k.integer(INT64_MIN, 16); }),
            "x.yaml:1: `k`: expected a whole number of at most 16, found '17'");
  EXPECT_EQ(complaint([&] { k.number(0.0, 0.5); }), "x.yaml:1: `k`: expected a number from 0 to 0.5, found '17'");
  EXPECT_EQ(k.integer(17, 17), 17);
}

TEST(SpecTypes, Quantities) {
  const Spec spec = read("{bare: 500, wrong: 400 Gbs, map: {}, none: , zero: 0 Gb/s, part: 0.5 ps}");
  EXPECT_EQ(complaint([&] { spec.at("bare").time(); }),
            "x.yaml:1: `bare`: expected a time such as '500 ns', found '500': a number without a unit; write for "
            "example '500 ns'");
  EXPECT_EQ(complaint([&] { spec.at("bare").bytes(); }),
            "x.yaml:1: `bare`: expected a size such as '64 MiB', found '500': a number without a unit; write for "
            "example '500 B'");
  EXPECT_EQ(complaint([&] { spec.at("wrong").bandwidth(); })
                .rfind("x.yaml:1: `wrong`: expected a rate such as '400 Gb/s', found '400 Gbs': unknown unit 'Gbs' "
                       "(did you mean 'Gb/s'?); known units: b/s, ",
                       0),
            0U);
  EXPECT_EQ(complaint([&] { spec.at("map").time(); }),
            "x.yaml:1: `map`: expected a time such as '500 ns', found a map");
  EXPECT_EQ(complaint([&] { spec.at("none").bytes(); }),
            "x.yaml:1: `none`: expected a size such as '64 MiB', found nothing");
  EXPECT_EQ(complaint([&] { spec.at("zero").bandwidth(); }),
            "x.yaml:1: `zero`: expected a rate above 0, found '0 Gb/s'");
  EXPECT_NE(complaint([&] { spec.at("part").time(); }).find("not a whole number of ps"), std::string::npos);
}

TEST(SpecTypes, OneOf) {
  const Spec spec = read("{kind: fat_tre, list: []}");
  EXPECT_EQ(complaint([&] {
              spec.at("kind").one_of({"fat_tree", "torus"});
            }),
            "x.yaml:1: `kind`: unknown value 'fat_tre' (did you mean 'fat_tree'?); expected one of: fat_tree, torus");
  EXPECT_EQ(complaint([&] {
              spec.at("list").one_of({"fat_tree", "torus"});
            }),
            "x.yaml:1: `list`: expected one of: fat_tree, torus; found a list");
  EXPECT_EQ(spec.at("kind").one_of({"fat_tre"}), "fat_tre");
}

TEST(SpecTypes, OwnErrors) {
  EXPECT_STREQ(read().at("topology").at("k").error("must be even").what(), "x.yaml:2: `topology.k`: must be even");
  EXPECT_STREQ(read("a: 1").error("too small").what(), "x.yaml:1: too small");
}

// --set ---------------------------------------------------------------------------------------------------------------

TEST(SpecSet, ReplacesAndAdds) {
  Spec spec = read();
  spec.set("topology.k", "8");
  spec.set("topology.link_delay", "500 ns");
  spec.set("output.file", "x.h5");
  spec.set("workload.pairs.1", "[3, 4]");
  spec.set("workload.pairs.0.1", "9");
  spec.set("workload.pairs.2", "[7, 8]");
  spec.set("network.nothing.inside", "true");
  EXPECT_EQ(spec.at("topology").at("k").integer(), 8);
  EXPECT_EQ(spec.at("topology").at("link_delay").time(), Time::from_ns(500));
  EXPECT_EQ(spec.at("topology").at("kind").text(), "fat_tree");
  EXPECT_EQ(spec.at("output").at("file").text(), "x.h5");
  EXPECT_EQ(spec.at("workload").at("pairs").size(), 3U);
  EXPECT_EQ(spec.at("workload").at("pairs")[1][0].integer(), 3);
  EXPECT_EQ(spec.at("workload").at("pairs")[0][0].integer(), 0);
  EXPECT_EQ(spec.at("workload").at("pairs")[0][1].integer(), 9);
  EXPECT_EQ(spec.at("workload").at("pairs")[2][1].integer(), 8);
  EXPECT_TRUE(spec.at("network").at("nothing").at("inside").boolean());
  EXPECT_EQ(spec.verbatim(), experiment);
}

TEST(SpecRemove, LeavesOut) {
  Spec spec = read("{a: {b: 1, c: 2}, d: 3}");
  spec.remove("a.b");
  spec.remove("d");
  for (const char* absent : {"a.b", "d.e", "x", "x.y"}) spec.remove(absent);
  EXPECT_FALSE(spec.at("a").has("b"));
  EXPECT_EQ(spec.at("a").at("c").integer(), 2);
  EXPECT_EQ(spec.at("a").size(), 1U);
  EXPECT_FALSE(spec.has("d"));
  spec.set("a.b", "4");
  EXPECT_EQ(spec.at("a").at("b").integer(), 4);
}

TEST(SpecSet, ChangesTheKind) {
  Spec spec = read("{ack: 66 B, list: [1]}");
  const Spec before = spec.at("ack");
  spec.set("ack", "{size: 66 B, interval: 4}");
  spec.set("list", "none");
  EXPECT_EQ(spec.at("ack").at("interval").integer(), 4);
  EXPECT_EQ(spec.at("ack").at("interval").path(), "ack.interval");
  EXPECT_EQ(spec.at("list").text(), "none");
  EXPECT_TRUE(before.is_map());  // handles see the change
  spec.set("ack", "");
  EXPECT_TRUE(spec.at("ack").is_null());
}

TEST(SpecSet, MakesListsWhereNothingIs) {
  Spec spec = read("a: 1");
  spec.set("output.pcap.0", "host3:0");
  EXPECT_EQ(spec.at("output").at("pcap")[0].text(), "host3:0");
}

TEST(SpecSet, NumbersAreKeysOfMaps) {
  Spec spec = read("ranks: {0: a, 1: b}");
  spec.set("ranks.1", "c");
  EXPECT_EQ(spec.at("ranks").at("1").text(), "c");
  EXPECT_EQ(spec.at("ranks").at("0").text(), "a");
}

TEST(SpecSet, OneOfTwoAliasesAlone) {
  Spec spec = read("a: &a {k: 1}\nb: *a\n");
  spec.set("b.k", "2");
  EXPECT_EQ(spec.at("a").at("k").integer(), 1);
  EXPECT_EQ(spec.at("b").at("k").integer(), 2);
}

TEST(SpecSet, Places) {
  Spec spec = read();
  spec.set("topology.k", "eight");
  EXPECT_EQ(spec.at("topology").at("k").where().text(), "--set topology.k=eight");
  EXPECT_EQ(complaint([&] { spec.at("topology").at("k").integer(); }),
            "--set topology.k=eight: `topology.k`: expected a whole number, found 'eight'");
  spec.set("topology.kk", "{a: 1}");
  EXPECT_EQ(spec.at("topology").at("kk").at("a").where().text(), "--set topology.kk={a: 1}");
  EXPECT_EQ(spec.at("topology").at("kind").where().text(), "x.yaml:2");
}

TEST(SpecSet, UnknownKeys) {
  Spec spec = read("topology: {k: 4}");
  spec.set("topolgy.k", "8");
  spec.at("topology");
  EXPECT_EQ(complaint([&] { spec.finish(); }),
            "--set topolgy.k=8: unknown key 'topolgy' (did you mean 'topology'?); known here: topology");
}

TEST(SpecSet, ThroughAScalar) {
  Spec spec = read();
  EXPECT_EQ(complaint([&] { spec.set("topology.k.x", "1"); }),
            "--set topology.k.x=1: `topology.k` is the single value '4', so there is no 'x' in it to set");
}

TEST(SpecSet, OutsideOfAList) {
  Spec spec = read();
  for (const std::string step : {"3", "first", "-1", "1x"}) {
    EXPECT_EQ(complaint([&] { spec.set("workload.pairs." + step, "1"); }),
              "--set workload.pairs." + step + "=1: '" + step +
                  "' is not a place in the list `workload.pairs`; it has 2 items, counted from 0");
  }
}

TEST(SpecSet, BadPathOrValue) {
  Spec spec = read();
  for (const std::string path : {"", ".", "a..b", ".a", "a."}) {
    EXPECT_NE(complaint([&] { spec.set(path, "1"); }).find("is not a path"), std::string::npos) << path;
  }
  EXPECT_EQ(complaint([&] { spec.set("topology.k", "[1"); }).rfind("--set topology.k=[1: not valid YAML: ", 0), 0U);
  EXPECT_EQ(spec.at("topology").at("k").integer(), 4);
}

// dump ----------------------------------------------------------------------------------------------------------------

/// A text that two trees share exactly if they have the same values.
std::string shape(const Spec& spec) {
  std::string text;
  if (spec.is_map()) {
    for (const auto& [key, value] : spec.entries()) text += "<" + key + ">" + shape(value) + ";";
    return "{" + text + "}";
  }
  if (spec.is_sequence()) {
    for (const Spec& item : spec.items()) text += shape(item) + ",";
    return "[" + text + "]";
  }
  return spec.is_null() ? "null" : "'" + spec.text() + "'";
}

TEST(SpecDump, RoundTrip) {
  for (const std::string& text :
       {experiment, std::string("a: 1"), std::string("[1, [2, {a: b}], {}]"), std::string("word"),
        std::string("a: &a {k: 1}\nb: *a\nc: {<<: *a, d: 2}\n"),
        std::string("{a: 'null', b: null, c: ~, d: \"\", e: 'yes', f: \"two\\nlines\", g: 'it''s', h: '# no comment'}"),
        std::string("'null': 1\n'a: b': 2\n'': 3\n'- x': 4\n"),
        std::string("text: |\n  one\n  two\nfold: >\n  a\n  b\n")}) {
    const Spec spec = read(text);
    const Spec again = read(spec.dump());
    EXPECT_EQ(shape(again), shape(spec)) << text << "\n" << spec.dump();
    EXPECT_EQ(again.dump(), spec.dump());
  }
}

TEST(SpecDump, ShowsWhatSetChanged) {
  Spec spec = read("topology: {kind: fat_tree, k: 4}\n");
  spec.set("topology.k", "8");
  spec.set("output.file", "x.h5");
  EXPECT_EQ(spec.dump(), "topology: {kind: fat_tree, k: 8}\noutput:\n  file: x.h5\n");
  EXPECT_EQ(spec.at("topology").dump(), spec.dump());  // the whole document from any handle
}

}  // namespace
}  // namespace weft::spec_test
