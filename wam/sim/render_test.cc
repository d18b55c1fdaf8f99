#include "wam/sim/render.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wam/sim/world.h"

namespace wam::sim {
namespace {

using Pixel = std::array<int, 3>;

// The pixel that shows `at`.
Pixel pixel_at(const HostTensor& picture, const Camera& camera, Vec2 at) {
  const double scale = camera.view_size / (2 * camera.half_width);
  const auto column = static_cast<int>((at.x - camera.center.x + camera.half_width) * scale);
  const auto row = static_cast<int>((camera.center.y + camera.half_width - at.y) * scale);
  const auto bytes = picture.as<uint8_t>();
  const size_t offset = 3 * (static_cast<size_t>(row) * camera.view_size + column);
  return {bytes[offset], bytes[offset + 1], bytes[offset + 2]};
}

TEST(Render, SameSceneSamePixels) {
  World a({}), b({});
  a.reset(1);
  b.reset(1);
  for (const auto& [x, y] : {std::pair{a.render_overview(), b.render_overview()},
                             std::pair{a.render_gripper(), b.render_gripper()}}) {
    EXPECT_TRUE(std::ranges::equal(x.as<uint8_t>(), y.as<uint8_t>()));
    EXPECT_EQ(x.shape(), (Shape{64, 64, 3}));
  }
}

TEST(Render, BlocksShowTheirColourInBothViews) {
  for (const int size : {16, 32, 64, 128}) {
    World world({.num_blocks = 4, .view_size = size, .gripper_view_half_width = 1});
    world.reset(2);
    const Scene& scene = world.scene();
    for (const Camera& camera : {overview_camera(size), gripper_camera(scene, 1, size)}) {
      const HostTensor picture = render(scene, camera);
      const Pixel red = pixel_at(picture, camera, scene.blocks[0].center);
      const Pixel green = pixel_at(picture, camera, scene.blocks[1].center);
      const Pixel blue = pixel_at(picture, camera, scene.blocks[2].center);
      const Pixel yellow = pixel_at(picture, camera, scene.blocks[3].center);
      EXPECT_GT(red[0], 2 * std::max(red[1], red[2])) << size;
      EXPECT_GT(green[1], 2 * std::max(green[0], green[2])) << size;
      EXPECT_GT(blue[2], 2 * std::max(blue[0], blue[1])) << size;
      EXPECT_GT(std::min(yellow[0], yellow[1]), 2 * yellow[2]) << size;
    }
  }
}

TEST(Render, GripperStaysInTheMiddleOfItsView) {
  Scene scene{.gripper = {0.3, 0.7}, .blocks = {{BlockColor::kBlue, {0.3, 0.7}}}};
  const HostTensor picture = render(scene, gripper_camera(scene, 0.5, 64));
  const auto bytes = picture.as<uint8_t>();
  EXPECT_GT(bytes[3 * (32 * 64 + 32) + 2], 200);  // the block between the fingers
}

TEST(Render, OpeningAndHoldingAreVisible) {
  Scene open{.gripper = {0.5, 0.5}, .opening = 1, .blocks = {{BlockColor::kRed, {0.5, 0.5}}}};
  Scene closed = open;
  closed.opening = kHeldOpening;
  const Camera camera = gripper_camera(open, 0.5, 32);
  const HostTensor a = render(open, camera), b = render(closed, camera);
  EXPECT_FALSE(std::ranges::equal(a.as<uint8_t>(), b.as<uint8_t>()));
}

// An edge that crosses a pixel in the middle gives the mean of both sides: motion of a fraction of
// a pixel is visible.
TEST(Render, EdgesAreAntiAliased) {
  const auto red_sum = [](double x) {
    Scene scene{.gripper = {0.9, 0.9}, .blocks = {{BlockColor::kRed, {x, 0.4}}}};
    const HostTensor picture = render(scene, overview_camera(32));
    const auto bytes = picture.as<uint8_t>();
    // First moment of red along x over the row through the block.
    const Pixel row = {static_cast<int>((0.53 + 0.5 - 0.4) * 32 / 1.06), 0, 0};
    double moment = 0;
    for (int column = 8; column < 24; ++column)
      moment += column * bytes[3 * (row[0] * 32 + column)];
    return moment;
  };
  EXPECT_GT(red_sum(0.505), red_sum(0.500));
  EXPECT_GT(red_sum(0.510), red_sum(0.505));
}

}  // namespace
}  // namespace wam::sim
