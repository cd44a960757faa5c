// Stands where Retain's other bindings are: the tool proxy must not reach any of them.
export default {
  fetch() {
    throw new Error("the tool proxy reached what it must not");
  },
};
