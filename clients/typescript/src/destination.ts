/** Return the address of a deployment. Throws a TypeError for what is not a whole address; a page may name one of its own host. */
export function checkedUrl(url: string): string {
  const parsed = parsedUrl(url);
  if (!/^https?:$/.test(parsed.protocol)) throw new TypeError("url must begin with https:// or http://");
  if (parsed.username !== "" || parsed.password !== "") throw new TypeError("url must have no user and no password");
  if (/[?#]/.test(url)) throw new TypeError("url ends with its path: it has no ? and no #");
  return url;
}

/** Return a key or a token. Throws a TypeError, without the key, for what no header can carry. */
export function checkedKey(key: string): string {
  if (/^[!-~]+$/.test(key)) return key;
  throw new TypeError(
    "key must be a key or a token alone: it is empty, or has a space, a line break or a letter beyond ASCII",
  );
}

function parsedUrl(url: string): URL {
  try {
    return new URL(url, globalThis.location?.href);
  } catch {
    throw new TypeError("url is not an address: it must begin with https:// or http://, and name a host");
  }
}
