/** Closes panels, `details` of class `panel`: Escape closes the last one, a click elsewhere those that float. */
export function closePanelsOnEscape() {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return;
    // A dialog closes on its own, and should be the only thing to close.
    if (document.querySelector('dialog[open]') !== null) return;
    const panel = [...document.querySelectorAll('details.panel[open]')].at(-1);
    if (panel === undefined) return;
    panel.open = false;
    panel.querySelector('summary')?.focus();
  });
  document.addEventListener('click', (event) => {
    for (const panel of document.querySelectorAll('details.panel.floats[open]'))
      if (!panel.contains(event.target)) panel.open = false;
  });
}
