// SPDX-License-Identifier: GPL-2.0-only
// Torus and mesh of any dimension, also twisted (W. Dally, B. Towles, "Principles and practices of interconnection
// networks", 2004, chapter 5; J. Camara, M. Moreto, E. Vallejo, et al., "Twisted torus topologies for enhanced
// interconnection networks", IEEE TPDS 21(12), 2010, doi:10.1109/TPDS.2010.30).
#include <fmt/format.h>

#include "topologies/families/torus_assembly.hpp"

namespace weft {
namespace {

constexpr std::size_t max_torus_dimensions = 16;

TorusShape read_dims(const Spec& spec) {
  TorusShape shape;
  const Spec dims = spec.at("dims");
  shape.dims = read_numbers(dims, 1, max_torus_dimensions, 1, max_nodes);
  if (const auto hosts = spec.find("hosts_per_router"))
    shape.hosts_per_router = static_cast<std::uint32_t>(hosts->integer(1, 1024));
  std::uint64_t routers = 1;
  for (const std::uint32_t k : shape.dims) routers = saturated_product(routers, k);
  require_nodes(dims, saturated_product(routers, 1 + shape.hosts_per_router));
  shape.wrap.assign(shape.dims.size(), true);
  return shape;
}

void read_wrap(const Spec& spec, TorusShape& shape) {
  const auto wrap = spec.find("wrap");
  if (!wrap) return;
  if (wrap->is_sequence() && wrap->size() != shape.dims.size())
    throw wrap->error(fmt::format("found {} values for {} dimensions; write true, false, or one for each dimension",
                                  wrap->size(), shape.dims.size()));
  for (std::size_t d = 0; d < shape.dims.size(); ++d)
    shape.wrap[d] = (wrap->is_sequence() ? (*wrap)[d] : *wrap).boolean();
}

void read_twist(const Spec& spec, TorusShape& shape) {
  const auto twist = spec.find("twist");
  if (!twist) return;
  shape.twist.assign(shape.dims.size(), {});
  const auto last = static_cast<std::int64_t>(shape.dims.size()) - 1;
  for (const Spec& item : twist->items()) {
    const Spec across = item.at("across");
    const auto d = static_cast<std::size_t>(across.integer(0, last));
    const Spec shift = item.at("shift");
    shape.twist[d] = read_numbers(shift, shape.dims.size(), shape.dims.size(), 0, max_nodes);
    item.finish();
    if (!shape.wrap[d] || shape.dims[d] < 2)
      throw across.error(fmt::format(
          "dimension {} has no wrap that could be twisted; it needs wrap: true and a size of 2 or more", d));
    if (shape.twist[d][d] != 0)
      throw shift[d].error(
          fmt::format("found {}; expected 0, for the wrap of dimension {} shifts the others", shape.twist[d][d], d));
  }
}

class Torus final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    TorusShape shape = read_dims(spec);
    read_wrap(spec, shape);
    read_twist(spec, shape);
    const auto links = read_links(spec, "link", shape.dims.size());
    const LinkSpec host_link = read_link(spec, "host_link", injection_link(shape, links));
    spec.finish();
    return assemble_torus(std::move(shape), links, host_link);
  }
};

class Mesh final : public TopologyBuilder {
 public:
  Topology build(const Spec& spec) const override {
    TorusShape shape = read_dims(spec);
    shape.wrap.assign(shape.dims.size(), false);
    const auto links = read_links(spec, "link", shape.dims.size());
    const LinkSpec host_link = read_link(spec, "host_link", injection_link(shape, links));
    spec.finish();
    return assemble_torus(std::move(shape), links, host_link);
  }
};

const Registration<TopologyBuilder, Torus> torus(
    "torus",
    "routers on a grid with wraps, one host each: {dims: [4, 4, 8], link_rate, link_delay, [wrap, twist, "
    "hosts_per_router, host_link_rate, host_link_delay]}");
const Registration<TopologyBuilder, Mesh> mesh("mesh",
                                               "torus without wraps: {dims: [4, 4], link_rate, link_delay, ...}");

}  // namespace
}  // namespace weft
