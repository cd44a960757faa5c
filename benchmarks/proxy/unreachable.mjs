// Replaces Retain's other bindings: the tool proxy must not reach any of them.
export default {
  fetch() {
    throw new Error("the tool proxy reached what it must not");
  },
};
