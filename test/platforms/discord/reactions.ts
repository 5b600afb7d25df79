import type { World } from './world.ts';

const emoji = /^\p{RGI_Emoji}$/v;

/** The emoji of a path: itself, or `name:id` of a guild's own, which some write `:name:id` or `a:name:id`. */
export const readEmoji = (given: string): string => given.replace(/^a?:(?=\w+:\d+$)/, '');

/** Emojis may come with or without their variation mark. */
export function isKnownEmoji(world: World, key: string): boolean {
  const id = /^\w+:(\d+)$/.exec(key)?.[1];
  if (id !== undefined) return [...world.guilds.values()].some((guild) => guild.emojis.has(id));
  return emoji.test(key) || emoji.test(`${key}\ufe0f`);
}
