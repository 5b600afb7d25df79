import { type Additions, bigint, integer, text } from './notation.ts';

/** Values that plugins keep. */
export const addPluginData = {
  tables: {
    pluginData: {
      columns: { plugin: text, key: text, value: text, bytes: integer, version: bigint },
      key: ['plugin', 'key'],
    },
  },
} satisfies Additions;
