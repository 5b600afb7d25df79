/** Puts an entry after the others, and removes the oldest if there are more than `most`. */
export function keepRecent<K, V>(map: Map<K, V>, most: number, [key, value]: readonly [K, V]): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.size > most ? map.keys().next() : undefined;
  if (oldest?.done === false) map.delete(oldest.value);
}
