// One call of a kernel by TensorFlow: its inputs, its output and its errors.
#pragma once
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/tf_status.h>
#include <tensorflow/c/tf_tensor.h>

#include <cstdint>
#include <vector>

namespace {

/** An input tensor; releases it at the end of its scope. */
struct Input {
  TF_Tensor* tensor = nullptr;
  ~Input() {
    if (tensor != nullptr) TF_DeleteTensor(tensor);
  }
  Input() = default;
  Input(Input&& other) noexcept : tensor(other.tensor) { other.tensor = nullptr; }
  Input(const Input&) = delete;
  const float* data() const { return static_cast<const float*>(TF_TensorData(tensor)); }
  const int32_t* integers() const { return static_cast<const int32_t*>(TF_TensorData(tensor)); }
  int64_t size() const { return TF_TensorElementCount(tensor); }
  int64_t dim(int axis) const { return TF_Dim(tensor, axis); }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape;
    for (int axis = 0; axis < TF_NumDims(tensor); axis++) shape.push_back(dim(axis));
    return shape;
  }
};

/** A call of a kernel. After `input` and `output`, a kernel returns if `failed()`, which reports the error to TensorFlow. */
struct Call {
  TF_OpKernelContext* context;
  TF_Status* status = TF_NewStatus();
  ~Call() { TF_DeleteStatus(status); }
  Input input(int index) {
    Input input;
    TF_GetInput(context, index, &input.tensor, status);
    return input;
  }
  /** Allocates a result, which TensorFlow owns, and returns its data. */
  float* output(const std::vector<int64_t>& shape, int index = 0) {
    return static_cast<float*>(allocated(shape, index, TF_FLOAT));
  }
  /** Allocates a result of int32, as `output` does. */
  int32_t* integerOutput(const std::vector<int64_t>& shape) { return static_cast<int32_t*>(allocated(shape, 0, TF_INT32)); }
  bool failed() {
    if (TF_GetCode(status) == TF_OK) return false;
    TF_OpKernelContext_Failure(context, status);
    return true;
  }
  /** Reports an invalid input to TensorFlow. */
  void refuse(const char* message) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, message);
    TF_OpKernelContext_Failure(context, status);
  }

 private:
  /** Returns the data of a new result, whose numbers have four bytes each. */
  void* allocated(const std::vector<int64_t>& shape, int index, TF_DataType type) {
    int64_t size = 1;
    for (int64_t dimension : shape) size *= dimension;
    TF_Tensor* tensor = TF_AllocateOutput(context, index, type, shape.data(), static_cast<int>(shape.size()),
                                          static_cast<size_t>(size) * sizeof(int32_t), status);
    void* data = tensor == nullptr ? nullptr : TF_TensorData(tensor);
    if (tensor != nullptr) TF_DeleteTensor(tensor);
    return data;
  }
};

}  // namespace
