// Stands in for libcuda.so.1 of a driver for CUDA 11.4: as much of it as the CUDA runtime asks before
// it refuses.
extern "C" {

int cuInit(unsigned) { return 0; }

int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

// CUDA_ERROR_NOT_FOUND: a driver that old lacks what is asked for.
int cuGetProcAddress(const char*, void** function, int, unsigned long) {
  *function = nullptr;
  return 500;
}

}  // extern "C"
