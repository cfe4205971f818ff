// Runs before the first paint, so that a chosen theme doesn't flash in the other one.
(() => {
  try {
    const theme = localStorage.getItem('dragoman.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* storage may be switched off: the system's theme it is */ }
})();
