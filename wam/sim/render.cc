#include "wam/sim/render.h"

#include <algorithm>

namespace wam::sim {
namespace {

struct Rgb {
  double r = 0, g = 0, b = 0;
};

constexpr Rgb kFloor{30, 30, 34};
constexpr Rgb kTable{84, 84, 88};
constexpr Rgb kPadFill{112, 112, 112};
constexpr Rgb kPadBorder{190, 190, 180};
constexpr Rgb kGripper{245, 245, 245};
// The lamps: the table is warmer towards the right and greener towards the back, so that even a
// patch of bare table says where it lies.
constexpr double kLampX = 44, kLampY = 44;

constexpr std::array<Rgb, kMaxBlocks> kBlockColors = {
    {{232, 32, 32}, {24, 208, 56}, {40, 72, 248}, {240, 216, 24}}};

struct Box {
  Vec2 center, half;
  double corner = 0;  // radius of the rounded corners
};

// Signed distance to the box's edge, negative inside.
double distance(const Box& box, Vec2 p) {
  const double dx = std::abs(p.x - box.center.x) - (box.half.x - box.corner);
  const double dy = std::abs(p.y - box.center.y) - (box.half.y - box.corner);
  const double outside = length({std::max(dx, 0.0), std::max(dy, 0.0)});
  return outside + std::min(std::max(dx, dy), 0.0) - box.corner;
}

// The picture's state while one pixel is shaded, bottom layer first.
class Pixel {
 public:
  Pixel(Vec2 at, double pixel_width) : at_(at), pixel_width_(pixel_width), color_(kFloor) {}
  void paint(const Box& box, Rgb color) {
    const double cover = std::clamp(0.5 - distance(box, at_) / pixel_width_, 0.0, 1.0);
    color_.r += cover * (color.r - color_.r);
    color_.g += cover * (color.g - color_.g);
    color_.b += cover * (color.b - color_.b);
  }
  Vec2 at() const { return at_; }
  Rgb color() const { return color_; }

 private:
  Vec2 at_;
  double pixel_width_;
  Rgb color_;
};

Rgb table_color(Vec2 p) {
  return {kTable.r + kLampX * (p.x - 0.5), kTable.g + kLampY * (p.y - 0.5), kTable.b};
}

void paint_table(Pixel& pixel) {
  pixel.paint({{0.5, 0.5}, {0.5, 0.5}}, table_color(pixel.at()));
  for (const Pad pad : kPads) {
    constexpr double kBorder = 0.02;
    pixel.paint({pad_center(pad), {kPadHalf, kPadHalf}, 0.02}, kPadBorder);
    pixel.paint({pad_center(pad), {kPadHalf - kBorder, kPadHalf - kBorder}}, kPadFill);
  }
}

void paint_block(Pixel& pixel, const Block& block) {
  pixel.paint({block.center, {kBlockHalf, kBlockHalf}, 0.015},
              kBlockColors[static_cast<size_t>(block.color)]);
}

// Two fingers, and the bar on the far side that carries them.
void paint_gripper(Pixel& pixel, const Scene& scene) {
  constexpr double kFinger = 0.014, kFingerLength = 0.06, kBarOffset = 0.075;
  const double spread = kBlockHalf + kFinger + 0.08 * (scene.opening - kHeldOpening);
  for (const double side : {-1.0, 1.0}) {
    pixel.paint({scene.gripper + Vec2{side * spread, 0}, {kFinger, kFingerLength}}, kGripper);
  }
  pixel.paint({scene.gripper + Vec2{0, kBarOffset}, {spread + kFinger, kFinger}}, kGripper);
}

Rgb shade(const Scene& scene, Vec2 at, double pixel_width) {
  Pixel pixel(at, pixel_width);
  paint_table(pixel);
  for (size_t i = 0; i < scene.blocks.size(); ++i) {
    if (static_cast<int>(i) != scene.held) paint_block(pixel, scene.blocks[i]);
  }
  if (scene.held >= 0) paint_block(pixel, scene.blocks[scene.held]);
  paint_gripper(pixel, scene);
  return pixel.color();
}

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0) + 0.5); }

}  // namespace

Camera overview_camera(int view_size) {
  constexpr double kMargin = 0.03;
  return {{0.5, 0.5}, 0.5 + kMargin, view_size};
}

Camera gripper_camera(const Scene& scene, double half_width, int view_size) {
  return {scene.gripper, half_width, view_size};
}

HostTensor render(const Scene& scene, const Camera& camera) {
  const int size = camera.view_size;
  const double pixel_width = 2 * camera.half_width / size;
  HostTensor picture(DType::kU8, {size, size, 3});
  uint8_t* out = picture.as<uint8_t>().data();
  for (int row = 0; row < size; ++row) {
    const double y = camera.center.y + camera.half_width - (row + 0.5) * pixel_width;
    for (int column = 0; column < size; ++column) {
      const double x = camera.center.x - camera.half_width + (column + 0.5) * pixel_width;
      const Rgb color = shade(scene, {x, y}, pixel_width);
      *out++ = to_byte(color.r);
      *out++ = to_byte(color.g);
      *out++ = to_byte(color.b);
    }
  }
  return picture;
}

}  // namespace wam::sim
