// Replaces bindings that what is measured must not reach.
export default {
  fetch() {
    throw new Error("a benchmark reached what it must not");
  },
};
