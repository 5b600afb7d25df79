import type { SettingsChange } from '../../config/write-settings.ts';

/** The result of the answers: variables for `.env` and settings for the configuration file. */
export type Answers = {
  readonly variables: Readonly<Record<string, string>>;
  readonly settings: SettingsChange;
};
