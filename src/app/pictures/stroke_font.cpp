// SPDX-License-Identifier: GPL-2.0-only
// Letters as strokes, for pictures without a font library.
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "app/pictures/drawing.hpp"

namespace weft {
namespace {

struct Glyph {
  char character;
  std::string_view strokes;  ///< points "xy", strokes separated by spaces
};

constexpr std::array<Glyph, 47> glyphs = {{
    {'a', "062046 1434"},
    {'b', "00063645443303 3342413000"},
    {'c', "4130100105163645"},
    {'d', "00062644422000"},
    {'e', "40000646 0333"},
    {'f', "400006 0333"},
    {'g', "413010010516364543 23"},
    {'h', "0006 4046 0343"},
    {'i', "1030 2026 1636"},
    {'j', "4045361605"},
    {'k', "0006 400346"},
    {'l', "000646"},
    {'m', "0600234046"},
    {'n', "06004640"},
    {'o', "1001051636454130 1030"},
    {'p', "06003041423303"},
    {'q', "1001051636454130 1030 2446"},
    {'r', "06003041423303 2346"},
    {'s', "413010010213334445361605"},
    {'t', "0040 2026"},
    {'u', "000516364540"},
    {'v', "002640"},
    {'w', "0016233640"},
    {'x', "0046 4006"},
    {'y', "002340 2326"},
    {'z', "00400646"},
    {'0', "1001051636454130 1030 0541"},
    {'1', "112026 1636"},
    {'2', "01103041420646"},
    {'3', "0040234445361605"},
    {'4', "36300444"},
    {'5', "4000033344453606"},
    {'6', "3010010516364544330304"},
    {'7', "004016"},
    {'8', "1030414233130201 0110 1304051636454433"},
    {'9', "16364541301001021343"},
    {'-', "1333"},
    {'+', "0343 2125"},
    {'.', "2526"},
    {',', "2516"},
    {':', "2122 2526"},
    {'/', "0640"},
    {'_', "0646"},
    {'(', "30121436"},
    {')', "10323416"},
    {'=', "0242 0444"},
    {' ', ""},
}};

}  // namespace

std::vector<std::vector<Point>> strokes_of(char character) {
  const char wanted = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  std::vector<std::vector<Point>> result;
  for (const Glyph& glyph : glyphs) {
    if (glyph.character != wanted) continue;
    std::vector<Point> stroke;
    std::string_view rest = glyph.strokes;
    while (!rest.empty()) {
      if (rest.front() == ' ') {
        if (!stroke.empty()) result.push_back(std::exchange(stroke, {}));
        rest.remove_prefix(1);
        continue;
      }
      stroke.push_back({static_cast<double>(rest[0] - '0'), static_cast<double>(rest[1] - '0')});
      rest.remove_prefix(2);
    }
    if (!stroke.empty()) result.push_back(stroke);
  }
  return result;
}

}  // namespace weft
