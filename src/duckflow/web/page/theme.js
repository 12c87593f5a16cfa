// Before anything is drawn: the theme that was chosen here, or the machine's own.
(() => {
	const chosen = localStorage.getItem("duckflow-theme");
	if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
