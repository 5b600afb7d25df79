import { type Browser, chromium } from 'playwright-core';

const unwanted = [
  ...['SpareRendererForSitePerProcess', 'Translate', 'OptimizationHints', 'MediaRouter', 'HttpsUpgrades'],
  // Two pages behind the address bar that nobody sees: each new context loaded both, which cost more than ours.
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
];

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // One process for all pages, none kept in reserve, and no animations.
  '--renderer-process-limit=1',
  `--disable-features=${unwanted.join(',')}`,
  '--force-prefers-reduced-motion',
];

/** The system's Chromium, headless, connecting to nothing but the test. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.PARLEY_CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: flags,
  });
}
