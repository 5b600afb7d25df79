import type { SettingsChange } from '../../config/write-settings.ts';

/** What the answers come to: variables for `.env` and settings for the configuration file. */
export type Answers = {
  readonly variables: Readonly<Record<string, string>>;
  readonly settings: SettingsChange;
};
