// Pictures of a scene: a pure function of the scene and the camera, the same bits everywhere (sums,
// products and square roots only). Shapes are anti-aliased by their signed distance.
#pragma once

#include "wam/sim/scene.h"
#include "wam/tensor/host_tensor.h"

namespace wam::sim {

// A square camera looking straight down.
struct Camera {
  Vec2 center;            // of the part of the plane that is seen
  double half_width = 1;  // of that part, in table widths
  int view_size = 64;     // pixels per side
};

// Sees the table whole, with a little of the floor around it.
Camera overview_camera(int view_size);
// Moves with the gripper, which stays in the middle of the picture.
Camera gripper_camera(const Scene& scene, double half_width, int view_size);

// -> [view_size, view_size, 3] u8 RGB.
HostTensor render(const Scene& scene, const Camera& camera);

}  // namespace wam::sim
